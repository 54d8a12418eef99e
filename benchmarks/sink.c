/* A WebSocket service that does next to nothing, so that the sender is what is measured.
 *
 *   sink ARRIVALS [--port 0] [--every 10] [--delay-us 0] [--core N]
 *
 * One thread, level epoll. Frames are counted by their headers and never unmasked. Each connection's binary messages are
 * stamped (CLOCK_MONOTONIC, ns) when their last byte has been read. Every k-th one is answered {"partial":"red","at":ns},
 * at a place in the count that differs from connection to connection; a text with {"final":"red boat","at":ns} and a
 * close. `at` is taken just before the send. Answers wait for --delay-us. Pings and closes are answered.
 *
 * The port is printed first. On SIGTERM: ARRIVALS gets int64 for each connection in the order of their coming, the number
 * of messages, their payload bytes, and the arrival times; the totals are printed as one JSON line. */
#define _GNU_SOURCE
#include "handshake.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9 };

typedef struct {
    int fd;
    bool shaken, masked, final;
    uint8_t opcode, kind;               /* of this frame; of the message that it belongs to */
    uint8_t head[14], control[125];     /* a header that came in pieces; a control frame's payload, masked */
    char *request;                      /* what has come of the handshake */
    unsigned have, control_size;
    uint64_t left;                      /* payload of this frame still to come */
    bool within;
    int64_t number, bytes, count, room, *arrivals;
} Connection;

typedef struct { int64_t due; Connection *to; bool final; } Answer;

static Connection **seen;
static int64_t seen_count, seen_room, frames, bytes_read, refused;
static Answer *waiting;                 /* ring: a fixed delay keeps them in order */
static size_t first, held, ring = 1 << 12;
static int every = 10, timer_fd;
static int64_t delay_ns;
static char buffer[1 << 18];

static void die(const char *what) { perror(what), exit(1); }

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *grown(void *old, size_t size) {
    void *p = realloc(old, size);
    if (!p) die("memory");
    return p;
}

static void drop(Connection *c) {
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    free(c->request), c->request = NULL;
}

/* Small messages into an empty socket buffer; where one does not fit the far side has long stopped reading. */
static void say(Connection *c, const void *data, size_t size) {
    if (c->fd >= 0 && send(c->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size) refused++, drop(c);
}

static void speak(Connection *c, bool final) {
    char out[128];
    int size = snprintf(out + 2, sizeof out - 2, final ? "{\"final\":\"red boat\",\"at\":%lld}" : "{\"partial\":\"red\",\"at\":%lld}",
                        (long long)now_ns());
    out[0] = (char)0x81, out[1] = (char)size;
    if (final) memcpy(out + 2 + size, "\x88\x02\x03\xe8", 4), size += 4;
    say(c, out, (size_t)size + 2);
}

static void wake_at(int64_t at) {
    struct itimerspec t = {.it_value = {at / 1000000000, at % 1000000000}};
    timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
}

static void answer(Connection *c, bool final, int64_t now) {
    if (!delay_ns) { speak(c, final); return; }
    if (held == ring) {
        waiting = grown(waiting, 2 * ring * sizeof *waiting);
        memcpy(waiting + ring, waiting, first * sizeof *waiting), ring *= 2;
    }
    waiting[(first + held) % ring] = (Answer){now + delay_ns, c, final};
    if (held++ == 0) wake_at(now + delay_ns);
}

static void answers_due(void) {
    while (held && waiting[first].due <= now_ns()) {
        speak(waiting[first].to, waiting[first].final);
        first = (first + 1) % ring, held--;
    }
    if (held) wake_at(waiting[first].due);
}

static void control(Connection *c) {
    uint8_t out[127] = {c->opcode == PING ? 0x8A : 0x88, (uint8_t)c->control_size};
    const uint8_t *mask = c->head + 2;
    for (unsigned i = 0; i < c->control_size; i++) out[2 + i] = c->control[i] ^ (c->masked ? mask[i % 4] : 0);
    if (c->opcode == PING || c->opcode == CLOSE) say(c, out, c->control_size + 2);
    if (c->opcode == CLOSE) drop(c);
}

static void frame_ended(Connection *c, int64_t now) {
    c->within = false, c->have = 0;
    if (c->opcode & 8) { control(c); return; }
    if (!c->final) return;
    if (c->kind == TEXT) { answer(c, true, now); return; }
    if (c->count == c->room) c->arrivals = grown(c->arrivals, (size_t)(c->room = c->room ? 2 * c->room : 256) * 8);
    c->arrivals[c->count++] = now, frames++;
    if (every && (c->count + c->number * 7) % every == 0) answer(c, false, now);
}

/* A header of `have` bytes: its whole length once that is known, else more than `have`. */
static unsigned header_size(const uint8_t *h, unsigned have) {
    if (have < 2) return 2;
    unsigned length = h[1] & 127;
    return 2 + (length == 126 ? 2 : length == 127 ? 8 : 0) + (h[1] & 128 ? 4 : 0);
}

static void header_ended(Connection *c) {
    const uint8_t *h = c->head;
    unsigned length = h[1] & 127, wide = length == 126 ? 2 : length == 127 ? 8 : 0;
    c->opcode = h[0] & 15, c->final = h[0] & 128, c->masked = h[1] & 128;
    if (c->opcode == TEXT || c->opcode == BINARY) c->kind = c->opcode;
    c->left = wide ? 0 : length;
    for (unsigned i = 0; i < wide; i++) c->left = c->left << 8 | h[2 + i];
    c->control_size = 0, c->within = true;
    if (c->opcode < 8 && c->kind == BINARY) c->bytes += (int64_t)c->left, bytes_read += (int64_t)c->left;
}

static void taken(Connection *c, const char *data, size_t size, int64_t now) {
    while (c->fd >= 0 && (size || (c->within && !c->left))) {
        if (!c->within) {
            unsigned want = header_size(c->head, c->have) - c->have, take = want < size ? want : (unsigned)size;
            memcpy(c->head + c->have, data, take);
            c->have += take, data += take, size -= take;
            if (c->have >= 2 && c->have == header_size(c->head, c->have)) header_ended(c);
            continue;
        }
        size_t take = c->left < size ? c->left : size;
        if (c->opcode & 8) {
            if (c->control_size + take > sizeof c->control) { refused++, drop(c); return; }
            memcpy(c->control + c->control_size, data, take), c->control_size += (unsigned)take;
        }
        data += take, size -= take, c->left -= take;
        if (!c->left) frame_ended(c, now);
    }
}

static void shake(Connection *c, const char *data, size_t size, int64_t now) {
    size_t held_back = c->have, all = held_back + size;
    c->request = grown(c->request, all + 1);
    memcpy(c->request + held_back, data, size), c->request[all] = 0, c->have = (unsigned)all;
    char *end = strstr(c->request, "\r\n\r\n"), *key = strcasestr(c->request, "sec-websocket-key:");
    if (!end) {
        if (all > 16384) refused++, drop(c);
        return;
    }
    if (!key || key > end) { refused++, drop(c); return; }
    key += strlen("sec-websocket-key:"), key += strspn(key, " \t");
    char accept[29], reply[256];
    accept_for(key, strcspn(key, " \t\r"), accept);
    int length = snprintf(reply, sizeof reply, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                          "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", accept);
    say(c, reply, (size_t)length);
    char *request = c->request;
    c->request = NULL, c->shaken = true, c->have = 0;
    taken(c, end + 4, all - (size_t)(end + 4 - request), now);
    free(request);
}

static void welcome(int listener, int epoll) {
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        Connection *c = calloc(1, sizeof *c);
        if (!c) die("memory");
        c->fd = fd, c->number = seen_count;
        if (seen_count == seen_room) seen = grown(seen, (size_t)(seen_room = seen_room ? 2 * seen_room : 1024) * sizeof *seen);
        seen[seen_count++] = c;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)) die("epoll_ctl");
    }
}

static void readable(Connection *c) {
    if (c->fd < 0) return;
    ssize_t size = recv(c->fd, buffer, sizeof buffer, 0);
    int64_t now = now_ns();
    if (size > 0) (c->shaken ? taken : shake)(c, buffer, (size_t)size, now);
    else if (size == 0 || (errno != EAGAIN && errno != EINTR)) drop(c);
}

static void write_down(const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file) die(path);
    for (int64_t i = 0; i < seen_count; i++) {
        Connection *c = seen[i];
        fwrite(&c->count, 8, 1, file), fwrite(&c->bytes, 8, 1, file);
        fwrite(c->arrivals, 8, (size_t)c->count, file);
    }
    if (fclose(file)) die(path);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("{\"connections\":%lld,\"frames\":%lld,\"bytes\":%lld,\"refused\":%lld,\"cpu_s\":%.6f}\n", (long long)seen_count,
           (long long)frames, (long long)bytes_read, (long long)refused, cpu_s);
}

static int listening(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 4096)) die("listen");
    getsockname(fd, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port)), fflush(stdout);
    return fd;
}

int main(int argc, char **argv) {
    int port = 0;
    for (int i = 2; i + 1 < argc; i += 2) {
        long value = atol(argv[i + 1]);
        if (!strcmp(argv[i], "--port")) port = (int)value;
        else if (!strcmp(argv[i], "--every")) every = (int)value;
        else if (!strcmp(argv[i], "--delay-us")) delay_ns = value * 1000;
        else if (!strcmp(argv[i], "--core")) {
            cpu_set_t cores;
            CPU_ZERO(&cores);
            CPU_SET((size_t)value, &cores);
            if (sched_setaffinity(0, sizeof cores, &cores)) die("--core");
        } else { fprintf(stderr, "%s: no such option\n", argv[i]); return 2; }
    }
    if (argc < 2 || argc % 2) { fputs("sink ARRIVALS [--port 0] [--every 10] [--delay-us 0] [--core N]\n", stderr); return 2; }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files), files.rlim_cur = files.rlim_max, setrlimit(RLIMIT_NOFILE, &files);
    waiting = grown(NULL, ring * sizeof *waiting);
    sigset_t ends;
    sigemptyset(&ends), sigaddset(&ends, SIGTERM), sigaddset(&ends, SIGINT), sigprocmask(SIG_BLOCK, &ends, NULL);
    int epoll = epoll_create1(EPOLL_CLOEXEC), listener = listening(port);
    int signals = signalfd(-1, &ends, SFD_CLOEXEC);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    int *sources[] = {&listener, &signals, &timer_fd};  /* told from connections by their addresses */
    for (int i = 0; i < 3; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = sources[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, *sources[i], &event);
    }
    for (;;) {
        struct epoll_event events[512];
        int count = epoll_wait(epoll, events, 512, -1);
        for (int i = 0; i < count; i++) {
            void *of = events[i].data.ptr;
            uint64_t fired;
            if (of == &signals) { write_down(argv[1]); return 0; }
            if (of == &listener) welcome(listener, epoll);
            else if (of == &timer_fd) { if (read(timer_fd, &fired, 8) == 8) answers_due(); }
            else readable(of);
        }
    }
}
