/* A builtin for bash (`enable -f`): writes into the file that it is given. As bash declares them. */
#include <fcntl.h>
#include <unistd.h>

struct word { char *text; int flags; };
struct words { struct words *next; struct word *word; };

static int run(struct words *given)
{
	int fd = given ? open(given->word->text, O_WRONLY | O_CREAT, 0644) : -1;
	return fd < 0 || write(fd, "sprung\n", 7) != 7;
}

static char *help[] = {"writes", 0};
struct {
	char *name;
	int (*run)(struct words *);
	int flags;
	char *const *help;
	const char *usage;
	char *handle;
} wc_struct = {"wc", run, 1, help, "wc FILE", 0};
