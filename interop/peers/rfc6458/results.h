/* Prints the results of socket calls, one line for each: values, or names of errnos. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void print_result(const char *what, long result) {
    if (result < 0) {
        printf("%s: %s\n", what, strerrorname_np(errno));
    } else {
        printf("%s: %ld\n", what, result);
    }
}
#define PRINT(what, call) do { errno = 0; long result_ = (call); print_result(what, result_); } while (0)
