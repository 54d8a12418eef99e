/* What RFC 6455 asks of a handshake: SHA-1 (FIPS 180-4) and base64 (RFC 4648), for keys only; nothing here is secret. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t rolled(uint32_t x, int by) { return x << by | x >> (32 - by); }

static void sha1_block(uint32_t h[5], const uint8_t *block) {
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | block[4 * i + 1] << 16 | block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 80; i++) w[i] = rolled(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f, k;
        if (i < 20) f = (b & c) | (~b & d), k = 0x5A827999;
        else if (i < 40) f = b ^ c ^ d, k = 0x6ED9EBA1;
        else if (i < 60) f = (b & c) | (b & d) | (c & d), k = 0x8F1BBCDC;
        else f = b ^ c ^ d, k = 0xCA62C1D6;
        uint32_t next = rolled(a, 5) + f + e + k + w[i];
        e = d, d = c, c = rolled(b, 30), b = a, a = next;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

/* SHA-1 of at most 119 bytes. */
static void sha1(const char *text, size_t size, uint8_t digest[20]) {
    uint32_t h[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
    uint8_t padded[128] = {0};
    size_t whole = size < 56 ? 64 : 128;
    memcpy(padded, text, size);
    padded[size] = 0x80;
    padded[whole - 2] = (uint8_t)(size * 8 >> 8), padded[whole - 1] = (uint8_t)(size * 8);
    for (size_t at = 0; at < whole; at += 64) sha1_block(h, padded + at);
    for (int i = 0; i < 20; i++) digest[i] = (uint8_t)(h[i / 4] >> (24 - i % 4 * 8));
}

/* The value of Sec-WebSocket-Accept for a key, 28 characters and a zero. */
static void accept_for(const char *key, size_t size, char accept[29]) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[120];
    uint8_t digest[21] = {0};
    if (size > 60) size = 60;
    int length = snprintf(text, sizeof text, "%.*s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", (int)size, key);
    sha1(text, (size_t)length, digest);
    for (int i = 0; i < 7; i++) {
        uint32_t three = (uint32_t)digest[3 * i] << 16 | digest[3 * i + 1] << 8 | digest[3 * i + 2];
        for (int j = 0; j < 4; j++) accept[4 * i + j] = letters[three >> (18 - 6 * j) & 63];
    }
    accept[27] = '=', accept[28] = 0;
}
