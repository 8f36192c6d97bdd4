/*
 * The start-up stub of the standalone file: what the kernel runs first, in place of the dynamic
 * loader that an ordinary program asks for by PT_INTERP.
 *
 * The kernel has mapped the program, the embedded dynamic loader and this stub. What is left to do is
 * to make the embedded libraries into files that the loader can open, tell the loader by which paths,
 * and start it on the program as the kernel would have. Nothing in the environment, on the stack or
 * in the signal state changes; of the auxiliary vector, what tells of the program and its loader does.
 *
 * Freestanding: no library, no headers, no data of its own that is written to. `layout.h` is written
 * by stub.ts and says where everything lies.
 */
#include "layout.h"

typedef unsigned long word;

/* Linux system calls (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h). */
#if defined(__x86_64__)
enum {
  SYS_WRITE = 1,
  SYS_CLOSE = 3,
  SYS_MPROTECT = 10,
  SYS_MUNMAP = 11,
  SYS_FCNTL = 72,
  SYS_EXIT_GROUP = 231,
  SYS_OPENAT = 257,
  SYS_READLINKAT = 267,
  SYS_MEMFD_CREATE = 319,
};
#elif defined(__aarch64__)
enum {
  SYS_FCNTL = 25,
  SYS_OPENAT = 56,
  SYS_CLOSE = 57,
  SYS_WRITE = 64,
  SYS_READLINKAT = 78,
  SYS_EXIT_GROUP = 94,
  SYS_MUNMAP = 215,
  SYS_MPROTECT = 226,
  SYS_MEMFD_CREATE = 279,
};
#else
#error "the standalone file is made for x86-64 and arm64 only"
#endif

/* The same on both (include/uapi/linux: auxvec.h, fcntl.h, memfd.h, asm-generic/errno.h). */
enum {
  AT_NULL = 0,
  AT_PHDR = 3,
  AT_PHNUM = 5,
  AT_BASE = 7,
  AT_ENTRY = 9,
  AT_FDCWD = -100,
  O_CLOEXEC = 02000000,
  F_DUPFD_CLOEXEC = 1030,
  F_ADD_SEALS = 1033,
  F_SEAL_SEAL = 1,
  F_SEAL_SHRINK = 2,
  F_SEAL_GROW = 4,
  F_SEAL_WRITE = 8,
  MFD_CLOEXEC = 1,
  MFD_ALLOW_SEALING = 2,
  MFD_NOEXEC_SEAL = 8,
  PROT_READ = 1,
  EPERM = 1,
  EACCES = 13,
  EINVAL = 22,
  EMFILE = 24,
  ENOSYS = 38,
  STDERR = 2,
};

struct library {
  const char *name;
  const unsigned char *bytes;
  word size;
  /* Where the path goes by which the loader opens it: 32 bytes (PATH_BYTES of stub.ts). */
  char *path;
};

static const struct library libraries[] = {LIBRARIES};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Returns what the kernel does: a negative error number where the call fails. */
static long call(long number, word a, word b, word c, word d) {
#if defined(__x86_64__)
  long result;
  register word r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
#else
  register long x8 __asm__("x8") = number;
  register word x0 __asm__("x0") = a;
  register word x1 __asm__("x1") = b;
  register word x2 __asm__("x2") = c;
  register word x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return (long)x0;
#endif
}

/* Writes `text` to `to` and returns where the next one goes. */
static char *put(char *to, const char *text) {
  while (*text) *to++ = *text++;
  return to;
}

static char *put_number(char *to, word value) {
  char digits[20];
  int count = 0;
  do {
    digits[count++] = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  while (count) *to++ = digits[--count];
  return to;
}

/* The one line that a user sees: `problem`, the error number where it tells something, `remedy`. */
__attribute__((noreturn)) static void fail(const char *problem, long error, const char *remedy) {
  char line[512];
  char *end = put(line, "error: ");
  end = put(end, problem);
  if (error < 0) {
    end = put(end, " (errno ");
    end = put_number(end, (word)-error);
    end = put(end, ")");
  }
  end = put(end, ": ");
  end = put(end, remedy);
  end = put(end, "\n");
  call(SYS_WRITE, STDERR, (word)line, (word)(end - line), 0);
  for (;;) call(SYS_EXIT_GROUP, 1, 0, 0, 0);
}

#define OR_DYNAMIC ", or run the file that `bun run build.ts --dynamic` makes, which needs glibc"

__attribute__((noreturn)) static void fail_memfd(long error) {
  if (error == -ENOSYS) {
    fail("this system has no memfd_create", error, "run it on Linux 3.17 or later" OR_DYNAMIC);
  }
  if (error == -EPERM || error == -EACCES) {
    fail("memfd_create is forbidden here", error,
         "allow it in the seccomp profile or security policy" OR_DYNAMIC);
  }
  fail("the embedded libraries can't be put into memory", error,
       "raise the limit on open files, file size or memory");
}

/* Makes a file in memory that holds the library, and returns its descriptor. */
static long file_of(const struct library *library) {
  /*
   * What is mapped need not have the mode of something that can be executed as a program, and a
   * system with vm.memfd_noexec=2 insists that it has not. Before Linux 6.3 the flag is unknown.
   */
  word flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  long fd = call(SYS_MEMFD_CREATE, (word)library->name, flags | MFD_NOEXEC_SEAL, 0, 0);
  if (fd == -EINVAL) fd = call(SYS_MEMFD_CREATE, (word)library->name, flags, 0, 0);
  if (fd < 0) fail_memfd(fd);
  if (fd <= STDERR) {
    /* Started with a standard stream closed. It stays closed, or logs would go into the library. */
    long higher = call(SYS_FCNTL, (word)fd, F_DUPFD_CLOEXEC, STDERR + 1, 0);
    if (higher < 0) fail_memfd(higher);
    call(SYS_CLOSE, (word)fd, 0, 0, 0);
    fd = higher;
  }
  for (word written = 0; written < library->size;) {
    long result = call(SYS_WRITE, (word)fd, (word)(library->bytes + written),
                       library->size - written, 0);
    if (result <= 0) fail_memfd(result);
    written += (word)result;
  }
  /* Nobody changes code that runs. Where seals don't exist, only this safeguard is missing. */
  call(SYS_FCNTL, (word)fd, F_ADD_SEALS,
       F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, 0);
  return fd;
}

/* Gets everything ready for the loader and returns its entry point. `stack` is as the kernel left it. */
__attribute__((used)) word prepare(word *stack) {
  /* By number, not as /proc/self: a debugger that reads the path means this process, not its own. */
  char self[11];
  long length = call(SYS_READLINKAT, (word)AT_FDCWD, (word) "/proc/self", (word)self, sizeof self - 1);
  if (length <= 0) {
    fail("/proc is not mounted", 0,
         "mount it as container runtimes do (mount -t proc proc /proc)" OR_DYNAMIC);
  }
  self[length] = 0;

  for (word i = 0; i < COUNT(libraries); i++) {
    long fd = file_of(&libraries[i]);
    char *end = put(libraries[i].path, "/proc/");
    end = put(end, self);
    end = put(end, "/fd/");
    end = put_number(end, (word)fd);
    /* The library's name was there. */
    *end = 0;
    long opened = call(SYS_OPENAT, (word)AT_FDCWD, (word)libraries[i].path, O_CLOEXEC, 0);
    if (opened == -EMFILE) fail_memfd(opened);
    if (opened < 0) {
      fail("the files of this process can't be opened in /proc", opened,
           "mount /proc as container runtimes do (mount -t proc proc /proc)" OR_DYNAMIC);
    }
    call(SYS_CLOSE, (word)opened, 0, 0, 0);
  }
  /* Written once; and the copies that the files were made of are only memory that is lost. */
  call(SYS_MPROTECT, WRITTEN_START, WRITTEN_SIZE, PROT_READ, 0);
  call(SYS_MUNMAP, LIBRARIES_START, LIBRARIES_SIZE, 0, 0);

  /* argc, the arguments, 0, the environment, 0, and then pairs of a type and a value. */
  word *auxiliary = stack + 1 + stack[0] + 1;
  while (*auxiliary++) {
  }
  for (; auxiliary[0] != AT_NULL; auxiliary += 2) {
    switch (auxiliary[0]) {
      case AT_PHDR: auxiliary[1] = PROGRAM_HEADERS; break;
      case AT_PHNUM: auxiliary[1] = PROGRAM_HEADER_COUNT; break;
      case AT_BASE: auxiliary[1] = LOADER_BASE; break;
      case AT_ENTRY: auxiliary[1] = PROGRAM_ENTRY; break;
    }
  }
  return LOADER_ENTRY;
}

/* The loader gets the stack, and the registers that a program starts with: all of them 0. */
#if defined(__x86_64__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  mov %rsp, %rbx\n"
    "  mov %rsp, %rdi\n"
    "  call prepare\n"
    "  mov %rbx, %rsp\n"
    "  xor %ebx, %ebx\n"
    "  xor %ecx, %ecx\n"
    "  xor %edx, %edx\n"
    "  xor %esi, %esi\n"
    "  xor %edi, %edi\n"
    "  jmp *%rax\n");
#else
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  mov x19, sp\n"
    "  mov x0, sp\n"
    "  bl prepare\n"
    "  mov x16, x0\n"
    "  mov sp, x19\n"
    "  mov x0, xzr\n"
    "  mov x1, xzr\n"
    "  mov x2, xzr\n"
    "  mov x3, xzr\n"
    "  mov x19, xzr\n"
    "  mov x30, xzr\n"
    "  br x16\n");
#endif
