/* A program that needs no file but its own: it works below /data, and runs itself once more in a child that borrows its memory.
   With WAIT in its environment it waits for its input first. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words)
{
	struct stat status;
	char text[8];
	int file;
	pid_t child;
	DIR *top;

	(void)words;
	if (count > 1)
		return stat("/data/three", &status) ? 1 : 0;
	if (getenv("WAIT") && read(0, text, 1) != 1)
		return 5;
	file = open("/../data/one", O_RDONLY);
	if (file < 0 || read(file, text, sizeof text) != 4 || close(file) || chdir("/data") || mkdir("made", 0755))
		return 1;
	file = open("made/two", O_CREAT | O_WRONLY, 0600);
	if (write(file, "four", 4) != 4 || close(file) || rename("made/two", "/data/three"))
		return 2;
	top = opendir("/");
	while (readdir(top))
		;
	closedir(top);
	child = vfork();
	if (!child) {
		execl("/program", "program", "again", NULL);
		_exit(3);
	}
	waitpid(child, &file, 0);
	return WEXITSTATUS(file) ? 4 : 7;
}
