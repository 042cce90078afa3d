/* Working on stopped tasks from inside CRIU, which traces them: what the parts of the preload shim
 * share. x86-64 only; elsewhere they leave CRIU to itself.
 */
#include <stdint.h>
#include <sys/types.h>

#pragma GCC visibility push(hidden) /* CRIU has names of its own */

/* libc's own, looked up once at start. */
extern long (*real_ptrace)(int, ...);

/* The address of a system call instruction: in the vDSO, which every process has. 0: none found. */
uint64_t find_syscall(pid_t pid);

/* criu_ghost.c: called around each ptrace() of CRIU; the latter when it succeeded. */
void ghost_before_ptrace(int request, pid_t pid);
void ghost_after_ptrace(int request, pid_t pid, long data);

#pragma GCC visibility pop
