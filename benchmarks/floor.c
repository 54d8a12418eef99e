/* The least that sending can cost: a blocking send() of the same masked frame, on an absolute schedule, and nothing else.
 *
 *   floor PORT SESSIONS PAYLOAD_BYTES INTERVAL_MS SECONDS [CORE]
 *
 * One thread, a timerfd of 1 ms; phases are spread over the slots of the interval. Answers are never read. After SECONDS
 * of which the first is not counted, one JSON line: frames sent, processor time of this process and wall time, ns. */
#define _GNU_SOURCE
#include "handshake.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { UNCOUNTED_MS = 1000 };

static void die(const char *what) { perror(what), exit(1); }

static int64_t read_clock(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int connected(int port) {
    static const char request[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    char reply[512], accept[29];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to)) die("connect");
    if (send(fd, request, sizeof request - 1, 0) < 0) die("send");
    ssize_t size = recv(fd, reply, sizeof reply - 1, 0);
    if (size <= 0) die("handshake");
    reply[size] = 0, accept_for("dGhlIHNhbXBsZSBub25jZQ==", 24, accept);
    if (!strstr(reply, accept)) { fputs("handshake: not the right answer\n", stderr), exit(1); }
    return fd;
}

/* A whole binary frame, masked with 0x37fa213d: its size. */
static size_t framed(uint8_t *frame, size_t payload) {
    static const uint8_t mask[] = {0x37, 0xfa, 0x21, 0x3d};
    size_t head = 0;
    frame[head++] = 0x82;
    if (payload < 126) frame[head++] = (uint8_t)(0x80 | payload);
    else frame[head++] = 0x80 | 126, frame[head++] = (uint8_t)(payload >> 8), frame[head++] = (uint8_t)payload;
    memcpy(frame + head, mask, 4), head += 4;
    for (size_t i = 0; i < payload; i++) frame[head + i] = (uint8_t)i ^ mask[i % 4];
    return head + payload;
}

int main(int argc, char **argv) {
    if (argc < 6) { fputs("floor PORT SESSIONS PAYLOAD_BYTES INTERVAL_MS SECONDS [CORE]\n", stderr); return 2; }
    int port = atoi(argv[1]), sessions = atoi(argv[2]), interval = atoi(argv[4]);
    int64_t last = (int64_t)(atof(argv[5]) * 1000), frames = 0, cpu = 0, wall = 0;
    if (argc > 6) {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET((size_t)atol(argv[6]), &cores);
        if (sched_setaffinity(0, sizeof cores, &cores)) die("core");
    }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files), files.rlim_cur = files.rlim_max, setrlimit(RLIMIT_NOFILE, &files);
    uint8_t *frame = malloc(65536 + 8);
    int *fds = malloc(sizeof *fds * (size_t)sessions), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    size_t size = framed(frame, (size_t)atol(argv[3]) & 65535);
    for (int i = 0; i < sessions; i++) fds[i] = connected(port);
    int64_t zero = read_clock(CLOCK_MONOTONIC) + 100000000, now = 0;
    struct itimerspec ticks = {.it_value = {zero / 1000000000, zero % 1000000000}, .it_interval = {0, 1000000}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &ticks, NULL);
    while (now < last) {
        uint64_t passed;
        if (read(timer, &passed, 8) != 8) die("timer");
        for (; passed-- && now < last; now++) {
            if (now == UNCOUNTED_MS) {
                frames = 0;
                cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID), wall = read_clock(CLOCK_MONOTONIC);
            }
            int64_t slot = now % interval;
            int from = (int)((slot * sessions + interval - 1) / interval);
            int to = (int)(((slot + 1) * sessions + interval - 1) / interval);
            for (int i = from; i < to; i++, frames++)
                if (send(fds[i], frame, size, MSG_NOSIGNAL) != (ssize_t)size) die("send");
        }
    }
    cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu, wall = read_clock(CLOCK_MONOTONIC) - wall;
    printf("{\"frames\":%lld,\"cpu_ns\":%lld,\"wall_ns\":%lld}\n", (long long)frames, (long long)cpu, (long long)wall);
    usleep(200000);  /* what has been sent is read before the sockets go, for unread answers make a close a reset */
    return 0;
}
