"""Makes file calls from threads and forked children, and prints how many of each it has made.

argv[1]: the directory. Each worker has its own file; all append to one that they share.
"""

import json
import os
import sys
import threading

THREADS, CHILDREN, ROUNDS = 4, 3, 40


def work(name: str) -> None:
    shared = os.open("shared", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    for number in range(ROUNDS):
        own = os.open(f"{name}-{number}", os.O_CREAT | os.O_RDWR, 0o644)
        os.pwrite(own, b"x" * 100, 50)
        os.pread(own, 4096, 0)
        os.close(own)
        os.write(shared, b"line\n")
        os.rename(f"{name}-{number}", f"{name}-done")  # noqa: PTH104 - the call is meant
    os.close(shared)


def main() -> None:
    os.chdir(sys.argv[1])
    threads = [threading.Thread(target=work, args=(f"t{at}",)) for at in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for at in range(CHILDREN):
        if os.fork() == 0:
            work(f"c{at}")
            os._exit(0)
    for _ in range(CHILDREN):
        os.wait()
    workers = THREADS + CHILDREN
    each = workers * ROUNDS
    made = {"pwrite": each, "pread": each, "write": each, "rename": each}
    made["open"] = made["close"] = each + workers
    sys.stdout.write(json.dumps(made))


main()
