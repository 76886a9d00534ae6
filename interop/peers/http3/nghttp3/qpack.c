/* An encoder and a decoder of nghttp3 that interop/run drives: the commands are those of our example `qpack`
   (crates/h3/examples/qpack.rs). Compiled with -lnghttp3 (Debian: libnghttp3-dev). */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp3/nghttp3.h>

enum { MAX_FIELDS = 256 };

/* A section that waits for entries of the table, or that is being decoded. */
struct section {
    int64_t stream;
    nghttp3_qpack_stream_context *context;
    uint8_t *octets;
    size_t length, read;
    struct section *next;
};

static nghttp3_qpack_encoder *encoder;
static nghttp3_qpack_decoder *decoder;
static struct section *waiting;

static void fail(const char *what) {
    fprintf(stderr, "nghttp3: %s\n", what);
    exit(1);
}

static void fault(long code) {
    printf("fault %#lx: %s", (unsigned long)nghttp3_err_infer_quic_app_error_code((int)code), nghttp3_strerror((int)code));
}

static uint8_t *from_hex(const char *digits, size_t *length) {
    size_t count = strlen(digits) / 2;
    uint8_t *octets = malloc(count + 1);
    for (size_t i = 0; i < count; i++) {
        unsigned octet;
        if (sscanf(digits + 2 * i, "%2x", &octet) != 1) fail("not hexadecimal");
        octets[i] = (uint8_t)octet;
    }
    *length = count;
    return octets;
}

static void print_hex(const uint8_t *octets, size_t length) {
    for (size_t i = 0; i < length; i++) printf("%02x", octets[i]);
}

static void print_part(nghttp3_rcbuf *part) {
    nghttp3_vec octets = nghttp3_rcbuf_get_buf(part);
    print_hex(octets.base, octets.len);
    nghttp3_rcbuf_decref(part);
}

/* Decodes what can be decoded, and prints each field after `before`, which is then `between`. Returns 1 once the section
   is complete, 0 if it waits, and a negative error. Nothing is printed before it is known not to wait. */
static long decode(struct section *section, const char *before, const char *between) {
    for (;;) {
        nghttp3_qpack_nv field;
        uint8_t flags;
        long read = nghttp3_qpack_decoder_read_request(
            decoder, section->context, &field, &flags, section->octets + section->read, section->length - section->read, 1);
        if (read < 0) return read;
        section->read += (size_t)read;
        if (flags & NGHTTP3_QPACK_DECODE_FLAG_BLOCKED) return 0;
        if (flags & NGHTTP3_QPACK_DECODE_FLAG_EMIT) {
            fputs(before, stdout);
            before = between;
            print_part(field.name);
            putchar(':');
            print_part(field.value);
            if (field.flags & NGHTTP3_NV_FLAG_NEVER_INDEX) putchar('!');
        }
        if (flags & NGHTTP3_QPACK_DECODE_FLAG_FINAL) return 1;
    }
}

static void release(struct section *section) {
    nghttp3_qpack_stream_context_del(section->context);
    free(section->octets);
    free(section);
}

static void encode(int64_t stream, char *words) {
    nghttp3_nv fields[MAX_FIELDS];
    size_t count = 0;
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, ':');
        if (!value || count == MAX_FIELDS) fail("not a field");
        *value++ = 0;
        nghttp3_nv *field = &fields[count++];
        field->flags = NGHTTP3_NV_FLAG_NONE;
        if (*value && value[strlen(value) - 1] == '!') {
            value[strlen(value) - 1] = 0;
            field->flags = NGHTTP3_NV_FLAG_NEVER_INDEX;
        }
        field->name = from_hex(word, &field->namelen);
        field->value = from_hex(value, &field->valuelen);
    }
    nghttp3_buf prefix, lines, instructions;
    nghttp3_buf_init(&prefix);
    nghttp3_buf_init(&lines);
    nghttp3_buf_init(&instructions);
    int error = nghttp3_qpack_encoder_encode(encoder, &prefix, &lines, &instructions, stream, fields, count);
    if (error) {
        fault(error);
    } else {
        printf("section ");
        print_hex(prefix.pos, nghttp3_buf_len(&prefix));
        print_hex(lines.pos, nghttp3_buf_len(&lines));
        putchar(' ');
        print_hex(instructions.pos, nghttp3_buf_len(&instructions));
    }
    nghttp3_buf_free(&prefix, nghttp3_mem_default());
    nghttp3_buf_free(&lines, nghttp3_mem_default());
    nghttp3_buf_free(&instructions, nghttp3_mem_default());
    for (size_t i = 0; i < count; i++) {
        free(fields[i].name);
        free(fields[i].value);
    }
}

static void read_encoder_stream(const char *digits) {
    size_t length;
    uint8_t *octets = from_hex(digits, &length);
    long read = nghttp3_qpack_decoder_read_encoder(decoder, octets, length);
    free(octets);
    if (read < 0) {
        fault(read);
        return;
    }
    printf("ok");
    for (struct section **link = &waiting; *link;) {
        struct section *section = *link;
        char before[32];
        snprintf(before, sizeof before, " %lld=", (long long)section->stream);
        long done = decode(section, before, ",");
        if (done < 0) fail(nghttp3_strerror((int)done));
        if (done) {
            *link = section->next;
            release(section);
        } else {
            link = &section->next;
        }
    }
}

static void read_section(int64_t stream, const char *digits) {
    struct section *section = calloc(1, sizeof *section);
    section->stream = stream;
    section->octets = from_hex(digits, &section->length);
    if (nghttp3_qpack_stream_context_new(&section->context, stream, nghttp3_mem_default())) fail("no memory");
    long done = decode(section, "fields ", " ");
    if (done == 0) {
        printf("blocked");
        section->next = waiting;
        waiting = section;
        return;
    }
    if (done < 0) fault(done);
    release(section);
}

static void cancel(int64_t stream) {
    for (struct section **link = &waiting; *link;) {
        struct section *section = *link;
        if (section->stream == stream) {
            *link = section->next;
            release(section);
        } else {
            link = &section->next;
        }
    }
    if (nghttp3_qpack_decoder_cancel_stream(decoder, stream)) fail("cancel");
    printf("ok");
}

static void acknowledge(void) {
    nghttp3_buf out;
    size_t length = nghttp3_qpack_decoder_get_decoder_streamlen(decoder);
    uint8_t *octets = malloc(length + 1);
    out.begin = out.pos = out.last = octets;
    out.end = octets + length;
    nghttp3_qpack_decoder_write_decoder(decoder, &out);
    printf("instructions ");
    print_hex(out.pos, nghttp3_buf_len(&out));
    free(octets);
}

static void read_decoder_stream(const char *digits) {
    size_t length;
    uint8_t *octets = from_hex(digits, &length);
    long read = nghttp3_qpack_encoder_read_decoder(encoder, octets, length);
    free(octets);
    if (read < 0) fault(read);
    else printf("ok");
}

int main(int argc, char **argv) {
    if (argc != 3) fail("usage: qpack CAPACITY BLOCKED");
    size_t capacity = strtoul(argv[1], NULL, 10), blocked = strtoul(argv[2], NULL, 10);
    if (nghttp3_qpack_encoder_new(&encoder, capacity, nghttp3_mem_default())) fail("no encoder");
    if (nghttp3_qpack_decoder_new(&decoder, capacity, blocked, nghttp3_mem_default())) fail("no decoder");
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    while ((length = getline(&line, &size, stdin)) > 0) {
        if (line[length - 1] == '\n') line[--length] = 0;
        char *rest = strchr(line, ' ');
        if (rest) *rest++ = 0;
        else rest = line + length;
        if (!strcmp(line, "limits")) {
            char *second;
            nghttp3_qpack_encoder_set_max_dtable_capacity(encoder, strtoul(rest, &second, 10));
            nghttp3_qpack_encoder_set_max_blocked_streams(encoder, strtoul(second, NULL, 10));
            printf("ok");
        } else if (!strcmp(line, "encode")) {
            char *fields;
            int64_t stream = strtoll(rest, &fields, 10);
            encode(stream, fields);
        } else if (!strcmp(line, "encoder-stream")) {
            read_encoder_stream(rest);
        } else if (!strcmp(line, "decode")) {
            char *octets;
            int64_t stream = strtoll(rest, &octets, 10);
            read_section(stream, octets + strspn(octets, " "));
        } else if (!strcmp(line, "decoder-stream")) {
            read_decoder_stream(rest);
        } else if (!strcmp(line, "cancel")) {
            cancel(strtoll(rest, NULL, 10));
        } else if (!strcmp(line, "acknowledge")) {
            acknowledge();
        } else {
            fail("not a command");
        }
        putchar('\n');
        fflush(stdout);
    }
    return 0;
}
