/* Part of the shim that is preloaded into CRIU: a dump that does not copy large memory while the
 * session stands still.
 *
 * When CRIU has stopped every task and touched none yet, each large process P gets a copy-on-write
 * twin: a system call is run in P that clones it. The twin C never runs. Its address space (the
 * *ghost*) is handed to hold-ghosts, which keeps it alive; then C is killed and both its tracer and
 * its parent reap it, so that no process is left over, in or outside of the session. CRIU is told
 * that there are no pages where the ghost has them. The kernel keeps the ghost as it is while P
 * writes on: whoever asked for the dump reads those pages from it afterwards.
 *
 * Two things besides, since each walks every page of a process, 20 to 40 ms per gigabyte:
 *   - CRIU reads smaps for the flags of each mapping. Here that is done before the first task is
 *     stopped; CRIU gets what was read if the mappings are still the same.
 *   - V8 (node) marks its heap MADV_DONTFORK. Where that is much, the mark is taken off for the
 *     clone, and put on again.
 *
 * Whatever cannot be done for a process is said in the report, and CRIU copies that process as ever.
 *
 * HOLDFAST_GHOST="<socket of hold-ghosts>:<report>:<kB>" asks for it: descriptors, and how much
 * anonymous memory a process must have. A line of the report is the process's pid in the session, a
 * blank, and why it has no ghost: nothing if it has one.
 */
#define _GNU_SOURCE
#include "tracee.h"

#ifdef __x86_64__

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	GET_RSEQ = 0x420f,		/* CRIU's first request to a task once all are stopped */
	USER_CODE_64 = 0x33,		/* the code segment of a 64-bit program */
	SIGNAL_SET_BYTES = 8,
	EARLY_MIN_KB = 32 << 10,	/* resident: below, smaps is quick */
	UNFORKED_MAX = 256,		/* runs of mappings that are marked MADV_DONTFORK */
};
#define RANGE_MIN (64UL << 10)		/* a smaller mapping is left to CRIU: copied at once */
#define UNFORKED_MIN (8UL << 20)	/* less of MADV_DONTFORK is left to CRIU */

struct range { uint64_t start, end; };

struct task { pid_t pid; long options; };
static struct task *tasks;
static int task_count;

struct ghost { pid_t pid; struct range *ranges; int count; };
static struct ghost *ghosts;
static int ghost_count;

static int holder = -1, report = -1, least_kb, is_over;

static int (*real_ioctl)(int, unsigned long, ...);
static int (*real_openat64)(int, const char *, int, ...);

__attribute__((constructor)) static void find_the_real_ones(void)
{
	const char *wish = getenv("HOLDFAST_GHOST");
	real_ioctl = dlsym(RTLD_NEXT, "ioctl");
	real_openat64 = dlsym(RTLD_NEXT, "openat64");
	if (!wish || sscanf(wish, "%d:%d:%d", &holder, &report, &least_kb) != 3)
		is_over = 1;
}

/* -- reading /proc ------------------------------------------------------------------------- */

/* A whole file, ended by a zero byte; NULL if it cannot be read. */
static char *read_all(const char *path, size_t *size)
{
	enum { STEP = 64 << 10 };
	char *text = NULL;
	size_t room = 0, used = 0;
	ssize_t count;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	do {
		if (room - used < STEP)
			text = realloc(text, room = 2 * room + 2 * STEP);
		count = text ? read(fd, text + used, room - used - 1) : 0;
		used += count > 0 ? (size_t)count : 0;
	} while (count > 0);
	close(fd);
	if (text)
		text[used] = 0;
	if (size)
		*size = used;
	return text;
}

static char *read_proc(pid_t pid, const char *name, size_t *size)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	return read_all(path, size);
}

/* A number of /proc/PID/status, by the end of the line before and the line's name: its last column,
 * which is the innermost one of "NSpid:". -1: there is none. */
static int status_number(pid_t pid, const char *key)
{
	char *text = read_proc(pid, "status", NULL), *line = text ? strstr(text, key) : NULL;
	int value = -1;
	if (line) {
		char *end = strchr(line + 1, '\n');
		if (end)
			*end = 0;
		char *last = strrchr(line, '\t');
		value = atoi(last ? last : line + strlen(key));
	}
	free(text);
	return value;
}

static void say(pid_t pid, const char *why)
{
	dprintf(report, "%d %s\n", status_number(pid, "\nNSpid:"), why);
}

/* -- smaps, read before the freeze ---------------------------------------------------------- */

struct early { pid_t pid; char *maps, *smaps; size_t maps_size, smaps_size; };
static struct early *earlies;
static int early_count;

/* Of smaps, the lines that CRIU reads: of each mapping its own one and that of its flags. */
static void keep_early(pid_t pid)
{
	struct early made = { .pid = pid };
	char *text = read_proc(pid, "smaps", NULL), *next;
	FILE *maps = open_memstream(&made.maps, &made.maps_size);
	FILE *smaps = open_memstream(&made.smaps, &made.smaps_size);
	for (char *line = text; line && *line; line = next) {
		next = strchr(line, '\n');
		next = next ? next + 1 : line + strlen(line);
		int is_mapping = isxdigit(*line) && !isupper(*line);
		if (is_mapping)
			fwrite(line, 1, (size_t)(next - line), maps);
		if (is_mapping || !strncmp(line, "VmFlags:", 8))
			fwrite(line, 1, (size_t)(next - line), smaps);
	}
	fclose(maps);
	fclose(smaps);
	free(text);
	struct early *more = realloc(earlies, (size_t)(early_count + 1) * sizeof *earlies);
	if (more) {
		earlies = more;
		earlies[early_count++] = made;
	}
}

/* Of a process and all below it. */
static void read_early(pid_t pid)
{
	char path[64];
	if (status_number(pid, "\nVmRSS:") > EARLY_MIN_KB)
		keep_early(pid);
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *threads = opendir(path);
	struct dirent *thread;
	while (threads && (thread = readdir(threads))) {
		char name[sizeof thread->d_name + 16], *rest;
		snprintf(name, sizeof name, "task/%s/children", thread->d_name);
		char *text = isdigit(*thread->d_name) ? read_proc(pid, name, NULL) : NULL;
		for (char *child = text ? strtok_r(text, " ", &rest) : NULL; child;
		     child = strtok_r(NULL, " ", &rest))
			if (atoi(child) > 0)
				read_early(atoi(child));
		free(text);
	}
	if (threads)
		closedir(threads);
}

/* What was read, if the mappings have not changed since. A flag may have: madvise() of a whole
 * mapping, in some tens of milliseconds, is lost. */
static struct early *still_right(pid_t pid)
{
	for (int i = 0; i < early_count; i++) {
		size_t size = 0;
		if (earlies[i].pid != pid)
			continue;
		char *now = read_proc(pid, "maps", &size);
		int same = now && size == earlies[i].maps_size
			   && !memcmp(now, earlies[i].maps, size);
		free(now);
		return same ? &earlies[i] : NULL;
	}
	return NULL;
}

int openat64(int directory, const char *name, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, unsigned) : 0;
	va_end(arguments);
	if (early_count && !strcmp(name, "smaps")) {
		char link[64], path[64] = "";
		int pid = 0;
		snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
		ssize_t count = readlink(link, path, sizeof path - 1);
		struct early *early = count > 0 && sscanf(path, "/proc/%d", &pid) == 1
				      ? still_right(pid) : NULL;
		int fd = early ? memfd_create("smaps", MFD_CLOEXEC) : -1;
		if (fd >= 0 && pwrite(fd, early->smaps, early->smaps_size, 0)
			       == (ssize_t)early->smaps_size)
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return real_openat64(directory, name, flags, mode);
}

/* -- pages --------------------------------------------------------------------------------- */

/* Of linux/fs.h since 6.7: older headers lack it. */
struct pages { uint64_t start, end, categories; };
struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t inverted, mask, any_of, returned;
};
#define PAGEMAP_SCAN _IOWR('f', 16, struct scan)
enum { IS_FILE = 1 << 2, IS_PRESENT = 1 << 3, IS_SWAPPED = 1 << 4, IS_ZERO = 1 << 5 };

/* Whether there is a page of the process's own. */
static int has_pages(int pagemap, const struct range *range)
{
	struct pages found;
	struct scan scan = {
		.size = sizeof scan, .start = range->start, .end = range->end,
		.vec = (uint64_t)&found, .vec_len = 1, .max_pages = 1,
		.inverted = IS_FILE | IS_ZERO, .mask = IS_FILE | IS_ZERO,
		.any_of = IS_PRESENT | IS_SWAPPED, .returned = IS_PRESENT,
	};
	return real_ioctl(pagemap, PAGEMAP_SCAN, &scan) > 0;
}

static int is_plain_memory(const char *name)
{
	return *name != '[' || !strncmp(name, "[heap]", 6) || !strncmp(name, "[stack", 6)
	       || !strncmp(name, "[anon:", 6);
}

/* Which mappings the ghost holds: private, readable and anonymous ones. Those that a fork leaves out
 * are not among its own; those that it empties have pages in the process only. */
static int collect(struct ghost *ghost, pid_t twin, int twin_pages)
{
	char *maps = read_proc(twin, "maps", NULL), *rest, path[64];
	snprintf(path, sizeof path, "/proc/%d/pagemap", ghost->pid);
	int own_pages = open(path, O_RDONLY | O_CLOEXEC);
	for (char *line = maps ? strtok_r(maps, "\n", &rest) : NULL; line && own_pages >= 0;
	     line = strtok_r(NULL, "\n", &rest)) {
		struct range found;
		char rights[8];
		unsigned long inode;
		int name = 0;
		if (sscanf(line, "%lx-%lx %7s %*x %*s %lu %n", &found.start, &found.end, rights,
			   &inode, &name) < 4
		    || inode || rights[0] != 'r' || rights[3] != 'p'
		    || found.end - found.start < RANGE_MIN || !is_plain_memory(line + name))
			continue;
		if (has_pages(own_pages, &found) && !has_pages(twin_pages, &found))
			continue;
		struct range *more = realloc(ghost->ranges,
					     (size_t)(ghost->count + 1) * sizeof *more);
		if (!more)
			break;
		ghost->ranges = more;
		ghost->ranges[ghost->count++] = found;
	}
	free(maps);
	if (own_pages >= 0)
		close(own_pages);
	return ghost->count;
}

static const struct ghost *ghost_of(int pagemap)
{
	char link[64], path[64] = "";
	int pid = 0;
	snprintf(link, sizeof link, "/proc/self/fd/%d", pagemap);
	if (readlink(link, path, sizeof path - 1) < 0 || sscanf(path, "/proc/%d/pagemap", &pid) != 1)
		return NULL;
	for (int i = 0; i < ghost_count; i++)
		if (ghosts[i].pid == pid)
			return &ghosts[i];
	return NULL;
}

/* The first range that ends behind this address: they are in the order of addresses. */
static const struct range *next_range(const struct ghost *ghost, uint64_t at)
{
	int low = 0, high = ghost->count;
	while (low < high) {
		int middle = (low + high) / 2;
		if (ghost->ranges[middle].end > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low < ghost->count ? &ghost->ranges[low] : NULL;
}

/* CRIU's question which pages there are, answered for what the ghost does not hold. */
static int scan_without(int pagemap, struct scan *asked, const struct ghost *ghost)
{
	struct pages *found = (struct pages *)asked->vec;
	uint64_t at = asked->start, count = 0;
	while (at < asked->end && count < asked->vec_len) {
		const struct range *next = next_range(ghost, at);
		if (next && next->start <= at) {
			at = next->end;
			continue;
		}
		struct scan part = *asked;
		part.start = at;
		part.end = next && next->start < asked->end ? next->start : asked->end;
		part.vec = (uint64_t)(found + count);
		part.vec_len = asked->vec_len - count;
		int more = real_ioctl(pagemap, PAGEMAP_SCAN, &part);
		if (more < 0)
			return more;
		count += (uint64_t)more;
		at = part.walk_end;
		if (at < part.end)
			break; /* no more room for answers */
	}
	asked->walk_end = at < asked->end ? at : asked->end;
	return (int)count;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	struct scan *asked = argument;
	if (ghost_count && request == PAGEMAP_SCAN && asked->any_of == (IS_PRESENT | IS_SWAPPED)) {
		const struct ghost *ghost = ghost_of(fd);
		if (ghost)
			return scan_without(fd, asked, ghost);
	}
	return real_ioctl(fd, request, argument);
}

/* -- system calls in a stopped task ---------------------------------------------------------- */

struct place { pid_t pid; uint64_t instruction; struct user_regs_struct regs; };

/* Its result in *result; the process that it made, by our numbering, in *twin. -1 if it could not be
 * run. By stops at the call and behind it: a single step would reset the program's handler of
 * SIGTRAP if that is blocked. */
static int call_in(const struct place *place, long number, long a, long b, long c, long *result,
		   pid_t *twin)
{
	struct user_regs_struct regs = place->regs;
	int status = 0;
	regs.rip = place->instruction, regs.rax = (uint64_t)number, regs.orig_rax = ~0UL;
	regs.rdi = (uint64_t)a, regs.rsi = (uint64_t)b, regs.rdx = (uint64_t)c;
	regs.r10 = regs.r8 = regs.r9 = 0;
	if (real_ptrace(PTRACE_SETREGS, place->pid, 0, &regs) < 0)
		return -1;
	for (int stops = 0; stops < 2;) {
		if (real_ptrace(PTRACE_SYSCALL, place->pid, 0, 0) < 0
		    || waitpid(place->pid, &status, __WALL) != place->pid || !WIFSTOPPED(status))
			return -1;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_CLONE << 8)) {
			unsigned long made = 0;
			real_ptrace(PTRACE_GETEVENTMSG, place->pid, 0, &made);
			if (twin)
				*twin = (pid_t)made;
		} else if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			stops++;
		} else if (status >> 16 != PTRACE_EVENT_STOP) {
			return -1;
		}
	}
	if (real_ptrace(PTRACE_GETREGS, place->pid, 0, &regs) < 0)
		return -1;
	*result = (long)regs.rax;
	return 0;
}

/* Runs of mappings that a fork would leave out; none if that is not much. */
static int unforked(pid_t pid, struct range *runs)
{
	struct early *early = still_right(pid);
	struct range at = { 0, 0 };
	uint64_t total = 0;
	int count = 0, in_run = 0;
	for (char *line = early ? early->smaps : NULL; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		char flags[256] = "";
		if (sscanf(line, "VmFlags:%255[^\n]", flags) != 1) {
			sscanf(line, "%lx-%lx", &at.start, &at.end);
			continue;
		}
		/* not: of a device, without struct pages, huge, shared */
		if (!strstr(flags, " dc") || strstr(flags, " io") || strstr(flags, " pf")
		    || strstr(flags, " ht") || strstr(flags, " sh")) {
			in_run = 0;
			continue;
		}
		if (!in_run && count == UNFORKED_MAX)
			return 0;
		if (in_run)
			runs[count - 1].end = at.end;
		else
			runs[count++] = at;
		in_run = 1;
		total += at.end - at.start;
	}
	return total >= UNFORKED_MIN ? count : 0;
}

/* -- taking a ghost ------------------------------------------------------------------------- */

/* To hold-ghosts, which answers when the ghost stays without its process. */
static int hand_over(const struct place *place, int memory, int pages)
{
	char text[96], answer[8] = "";
	int fds[2] = { memory, pages };
	union { char room[CMSG_SPACE(sizeof fds)]; struct cmsghdr head; } control = { { 0 } };
	struct iovec data = { text, (size_t)snprintf(text, sizeof text, "%d %lx %lx",
		status_number(place->pid, "\nNSpid:"), (unsigned long)place->regs.rip,
		(unsigned long)place->regs.rsp) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof control };
	control.head.cmsg_len = CMSG_LEN(sizeof fds);
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(&control.head), fds, sizeof fds);
	if (sendmsg(holder, &message, MSG_NOSIGNAL) < 0
	    || recv(holder, answer, sizeof answer - 1, 0) <= 0)
		return -1;
	return strcmp(answer, "ok") ? -1 : 0;
}

/* It never ran; its tracer reaps it. */
static void end_twin(pid_t twin)
{
	int status;
	kill(twin, SIGKILL);
	while (waitpid(twin, &status, __WALL) == twin && WIFSTOPPED(status))
		;
}

/* Why not, or NULL. The twin is gone afterwards in any case. */
static const char *clone_and_keep(const struct place *place, struct ghost *ghost)
{
	static char reason[96];
	const char *why = NULL;
	char path[64];
	long number = 0, reaped = 0;
	pid_t twin = 0;
	/* No signal when it ends, and a plain wait() does not see it. What is shared costs nothing. */
	if (call_in(place, SYS_clone, CLONE_FILES | CLONE_FS | CLONE_IO | CLONE_SYSVSEM, 0, 0,
		    &number, &twin) < 0) {
		if (twin)
			end_twin(twin);
		return "no call could be run in it";
	}
	if (number <= 0 || !twin) {
		snprintf(reason, sizeof reason, "it cannot be cloned: %s", strerror((int)-number));
		return reason;
	}
	snprintf(path, sizeof path, "/proc/%d/mem", twin);
	int memory = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof path, "/proc/%d/pagemap", twin);
	int pages = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0 || pages < 0)
		why = "the memory of its clone cannot be opened";
	else if (!collect(ghost, twin, pages))
		why = "its memory is of kinds that are copied at once";
	else if (hand_over(place, memory, pages) < 0)
		why = "its clone cannot be kept";
	if (memory >= 0)
		close(memory);
	if (pages >= 0)
		close(pages);
	end_twin(twin);
	call_in(place, SYS_wait4, number, 0, __WALL, &reaped, NULL);
	return why;
}

static const char *take(struct task *task, struct ghost *ghost)
{
	static struct range runs[UNFORKED_MAX];
	/* SIGTRAP stays: blocked, a trap would reset the program's handler. */
	uint64_t blocked = ~(1UL << (SIGTRAP - 1)), mask;
	struct place place = { .pid = task->pid };
	const char *why = NULL;
	long result;
	if (status_number(task->pid, "\nVmLck:") != 0)
		return "part of its memory is locked";
	if (real_ptrace(PTRACE_GETREGS, task->pid, 0, &place.regs) < 0)
		return "it is ending";
	if (place.regs.cs != USER_CODE_64)
		return "it is a 32-bit program";
	if (!(place.instruction = find_syscall(task->pid)))
		return "no system call instruction was found in it";
	if (real_ptrace(PTRACE_GETSIGMASK, task->pid, SIGNAL_SET_BYTES, &mask) < 0
	    || real_ptrace(PTRACE_SETSIGMASK, task->pid, SIGNAL_SET_BYTES, &blocked) < 0)
		return "its signals cannot be blocked";
	real_ptrace(PTRACE_SETOPTIONS, task->pid, 0,
		    task->options | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE);
	int count = unforked(task->pid, runs);
	for (int i = 0; i < count; i++)
		call_in(&place, SYS_madvise, (long)runs[i].start,
			(long)(runs[i].end - runs[i].start), MADV_DOFORK, &result, NULL);
	why = clone_and_keep(&place, ghost);
	for (int i = 0; i < count; i++)
		call_in(&place, SYS_madvise, (long)runs[i].start,
			(long)(runs[i].end - runs[i].start), MADV_DONTFORK, &result, NULL);
	real_ptrace(PTRACE_SETOPTIONS, task->pid, 0, task->options);
	real_ptrace(PTRACE_SETREGS, task->pid, 0, &place.regs);
	real_ptrace(PTRACE_SETSIGMASK, task->pid, SIGNAL_SET_BYTES, &mask);
	return why;
}

static void take_all(void)
{
	ghosts = calloc((size_t)task_count, sizeof *ghosts);
	for (int i = 0; ghosts && i < task_count; i++) {
		pid_t pid = tasks[i].pid;
		struct ghost *ghost = &ghosts[ghost_count];
		if (status_number(pid, "\nTgid:") != pid
		    || status_number(pid, "\nRssAnon:") < least_kb)
			continue;
		*ghost = (struct ghost){ .pid = pid };
		const char *why = take(&tasks[i], ghost);
		say(pid, why ? why : "");
		if (why)
			free(ghost->ranges);
		else
			ghost_count++;
	}
}

/* -- what CRIU does to its tasks -------------------------------------------------------------- */

static struct task *task_of(pid_t pid)
{
	for (int i = 0; i < task_count; i++)
		if (tasks[i].pid == pid)
			return &tasks[i];
	return NULL;
}

void ghost_before_ptrace(int request, pid_t pid)
{
	if (is_over)
		return;
	if (request == PTRACE_SEIZE && !task_count)
		read_early(pid);
	if (request == GET_RSEQ && task_of(pid)) {
		is_over = 1;
		take_all();
	}
}

void ghost_after_ptrace(int request, pid_t pid, long data)
{
	if (is_over)
		return;
	struct task *task = task_of(pid);
	if (request == PTRACE_SEIZE && !task) {
		struct task *more = realloc(tasks, (size_t)(task_count + 1) * sizeof *tasks);
		if (more) {
			tasks = more;
			tasks[task_count++] = (struct task){ pid, 0 };
		}
	}
	if (request == PTRACE_SETOPTIONS && task)
		task->options = data;
}

#else

void ghost_before_ptrace(int request, pid_t pid)
{
	(void)request, (void)pid;
}

void ghost_after_ptrace(int request, pid_t pid, long data)
{
	(void)request, (void)pid, (void)data;
}

#endif
