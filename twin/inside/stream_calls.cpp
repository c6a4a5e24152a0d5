// C streams write inside the C library, where no call of ours stands: when a buffer is full, at each line, or
// at once. A reader on the other side of a pipe may wait for that, so each call that adds to such a stream
// counts as a write. Their waits are seen from outside (kernel_wait).
#undef _FORTIFY_SOURCE  // whose inline functions are named as these
#include <sys/stat.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "twin/inside/baton.hpp"

namespace weir::twin {
namespace {

// Whether it leads to another program, and not into a file or memory.
bool leads_out(FILE* stream) {
  const int saved = errno;
  const int descriptor = ::fileno_unlocked(stream);
  struct stat found{};
  const bool yes = descriptor >= 0 && ::fstat(descriptor, &found) == 0 &&
                   (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode) || S_ISCHR(found.st_mode));
  errno = saved;
  return yes;
}

template <class Result>
Result written(FILE* stream, Result result) {
  if (controlled() && leads_out(stream)) wrote();
  return result;
}

int counted(int result) {
  if (controlled()) wrote();
  return result;
}

}  // namespace
}  // namespace weir::twin

using namespace weir::twin;

extern "C" {

// Checked variants, which programs built with _FORTIFY_SOURCE call; <stdio.h> does not declare them. Of
// others its macros would take the place.
int __vfprintf_chk(FILE*, int, const char*, va_list);
int __vdprintf_chk(int, int, const char*, va_list);
int __overflow(FILE*, int);
#undef putc
#undef putchar
#undef putc_unlocked
#undef putchar_unlocked
#undef fwrite_unlocked
#undef fputs_unlocked

size_t fwrite(const void* from, size_t size, size_t count, FILE* stream) {
  return written(stream, WEIR_NEXT(fwrite)(from, size, count, stream));
}
size_t fwrite_unlocked(const void* from, size_t size, size_t count, FILE* stream) {
  return written(stream, WEIR_NEXT(fwrite_unlocked)(from, size, count, stream));
}
int fputs(const char* text, FILE* stream) { return written(stream, WEIR_NEXT(fputs)(text, stream)); }
int fputs_unlocked(const char* text, FILE* stream) {
  return written(stream, WEIR_NEXT(fputs_unlocked)(text, stream));
}
int puts(const char* text) { return written(stdout, WEIR_NEXT(puts)(text)); }
int fputc(int character, FILE* stream) { return written(stream, WEIR_NEXT(fputc)(character, stream)); }
int putc(int character, FILE* stream) { return written(stream, WEIR_NEXT(putc)(character, stream)); }
int putchar(int character) { return written(stdout, WEIR_NEXT(putchar)(character)); }
int putc_unlocked(int character, FILE* stream) {
  return written(stream, WEIR_NEXT(putc_unlocked)(character, stream));
}
int putchar_unlocked(int character) { return written(stdout, WEIR_NEXT(putchar_unlocked)(character)); }
// What inlined putc_unlocked() calls when the buffer is full.
int __overflow(FILE* stream, int character) {
  return written(stream, WEIR_NEXT(__overflow)(stream, character));
}

int vfprintf(FILE* stream, const char* format, va_list list) {
  return written(stream, WEIR_NEXT(vfprintf)(stream, format, list));
}
int vprintf(const char* format, va_list list) { return ::vfprintf(stdout, format, list); }
int fprintf(FILE* stream, const char* format, ...) {
  va_list list;
  va_start(list, format);
  const int result = ::vfprintf(stream, format, list);
  va_end(list);
  return result;
}
int printf(const char* format, ...) {
  va_list list;
  va_start(list, format);
  const int result = ::vfprintf(stdout, format, list);
  va_end(list);
  return result;
}
int __vfprintf_chk(FILE* stream, int flag, const char* format, va_list list) {
  return written(stream, WEIR_NEXT(__vfprintf_chk)(stream, flag, format, list));
}
int __vprintf_chk(int flag, const char* format, va_list list) {
  return ::__vfprintf_chk(stdout, flag, format, list);
}
int __fprintf_chk(FILE* stream, int flag, const char* format, ...) {
  va_list list;
  va_start(list, format);
  const int result = ::__vfprintf_chk(stream, flag, format, list);
  va_end(list);
  return result;
}
int __printf_chk(int flag, const char* format, ...) {
  va_list list;
  va_start(list, format);
  const int result = ::__vfprintf_chk(stdout, flag, format, list);
  va_end(list);
  return result;
}
int vdprintf(int descriptor, const char* format, va_list list) {
  return counted(WEIR_NEXT(vdprintf)(descriptor, format, list));
}
int dprintf(int descriptor, const char* format, ...) {
  va_list list;
  va_start(list, format);
  const int result = ::vdprintf(descriptor, format, list);
  va_end(list);
  return result;
}
int __vdprintf_chk(int descriptor, int flag, const char* format, va_list list) {
  return counted(WEIR_NEXT(__vdprintf_chk)(descriptor, flag, format, list));
}
int __dprintf_chk(int descriptor, int flag, const char* format, ...) {
  va_list list;
  va_start(list, format);
  const int result = ::__vdprintf_chk(descriptor, flag, format, list);
  va_end(list);
  return result;
}
void perror(const char* text) {
  WEIR_NEXT(perror)(text);
  if (controlled()) wrote();
}

int fflush(FILE* stream) {
  const int result = WEIR_NEXT(fflush)(stream);
  if (controlled()) wrote();
  return result;
}
int fclose(FILE* stream) {
  const int result = WEIR_NEXT(fclose)(stream);
  if (controlled()) wrote();
  return result;
}
int pclose(FILE* stream) {
  if (controlled()) wrote();  // it closes the pipe before it waits
  return WEIR_NEXT(pclose)(stream);
}
}
