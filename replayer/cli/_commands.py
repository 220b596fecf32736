"""What each command does, examples of it, and the options that most people need.

Help, completions and the manual page are made of this table and of the options that a command's
module declares. Nothing is imported here, so that a list of commands costs nothing.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class CommandHelp:
    """What the help of a command says first."""

    about: str
    """What it does: a sentence without capital and full stop."""
    examples: str
    """Command lines, each below a comment that says what for."""
    common: tuple[str, ...] = ()
    """Options that ``-h`` shows, in this order; none: all of them."""
    is_on_mounts: bool = False
    """Whether it makes calls on mounts, which may never return."""


PROGRAM = CommandHelp(
    about="run an application's file accesses on a mount, as its users would feel them",
    examples="""
        # which of two mounts is better for a web site?
        replayer run wordpress-pages --target nfs=/mnt/nfs --target ebs=/data
        # how is this mount mounted, and what would help?
        replayer doctor /mnt/nfs
        """,
)

_LOAD = ("--target", "--users", "--run-time", "--cache", "--budget", "--rounds", "--threshold")
_RESULTS = ("--details", "--html", "--json", "--output")

COMMANDS = {
    "run and compare": {
        "run": CommandHelp(
            about="run a scenario on targets, and show what its users would feel",
            examples=r"""
                # compare two mounts
                replayer run wordpress-pages --target nfs=/mnt/nfs --target ebs=/data
                # 50 users for 5 minutes with cold caches; fail if pages are slow
                replayer run wordpress-pages --target /mnt/nfs -u 50 -t 5m \
                    --cache cold --threshold 'front_page.p95 < 200ms'
                # how much slower are pages while others upload 20 files a second?
                replayer run wordpress-pages --target /mnt/nfs --neighbour uploads@20/s
                """,
            common=(*_LOAD, "--neighbour", "--set", *_RESULTS),
            is_on_mounts=True,
        ),
        "replay": CommandHelp(
            about="replay a trace on targets, and report times and divergences",
            examples=r"""
                # replay a whole trace on two mounts
                replayer replay mysite --target nfs=/mnt/nfs --target ebs=/data
                # replay its requests: 8 users, 20 requests a second, for a minute
                replayer replay wordpress/login --requests login-form=3 login-post=1 \
                    --pace open --rate 20/s -u 8 -t 60s
                """,
            common=(*_LOAD, "--pace", "--requests", *_RESULTS),
            is_on_mounts=True,
        ),
        "capacity": CommandHelp(
            about="find the largest load that each target carries",
            examples=r"""
                # how many page views a second does each mount carry?
                replayer capacity wordpress-pages --threshold 'front_page.p95 < 200ms' \
                    --target nfs=/mnt/nfs --target ebs=/data
                # how many users until a session takes too long, and at what price?
                replayer capacity php-sessions --by users --target /mnt/nfs \
                    --threshold 'own_session.p99 < 1s' --prices prices.yaml
                """,
            common=(
                *("--target", "--threshold", "--by", "--precision", "--budget", "--set"),
                *("--prices", "--html", "--json", "--output"),
            ),
            is_on_mounts=True,
        ),
        "study": CommandHelp(
            about="repeat a published study on your targets",
            examples="""
                # show the published figures of study B
                replayer study B
                # repeat it on two mounts, within 3 minutes
                replayer study B --target efs=/mnt/efs --target zfs=/mnt/zfs --quick
                """,
        ),
        "baseline": CommandHelp(
            about="measure the limits of targets with fio, and rank them",
            examples="""
                # compare a mount with a local disk
                replayer baseline cache upload --target nfs=/mnt/nfs --target ebs=/data
                # run a job file of your own
                replayer baseline mine.fio --target /mnt/nfs --size 100MiB --runtime 10s
                """,
            common=("--target", "--size", "--runtime", "--rounds", "--threshold", *_RESULTS),
            is_on_mounts=True,
        ),
        "web": CommandHelp(
            about="serve a web page that starts, shows and compares runs",
            examples=r"""
                # serve the page on this machine alone
                replayer web --target nfs=/mnt/nfs --target ebs=/data
                # serve it to other machines; it asks for the secret in the file
                replayer web --target /mnt/nfs --web-host 0.0.0.0 --web-login \
                    --web-secret-file secret.txt
                """,
            common=("--target", "--users", "--web-host", "--web-port", "--web-login", "--offer"),
            is_on_mounts=True,
        ),
    },
    "read results": {
        "report": CommandHelp(
            about="print the report of finished, interrupted or killed runs",
            examples="""
                # print all that was measured and found
                replayer report latest --details
                # write a page with charts
                replayer report runs/efs --html efs.html
                """,
        ),
        "compare": CommandHelp(
            about="rank the targets of several runs of the same work",
            examples="""
                # rank the targets of two runs
                replayer compare runs/efs runs/zfs
                # write a page with charts
                replayer compare runs/efs runs/zfs --html comparison.html
                """,
        ),
        "runs": CommandHelp(
            about="list runs, name one to keep, show when figures changed",
            examples="""
                # list the runs in ./replayer-runs
                replayer runs
                # keep the last one under a name, for reports and --baseline
                replayer runs keep before-upgrade latest
                """,
        ),
        "cost": CommandHelp(
            about="compute costs per month and page view, from your prices",
            examples="""
                # price a run
                replayer cost runs/efs --prices prices.yaml
                # print JSON
                replayer cost runs/efs --prices prices.yaml --json
                """,
        ),
    },
    "scenarios and traces": {
        "scenarios": CommandHelp(
            about="list the shipped scenarios",
            examples="""
                # list them
                replayer scenarios
                # list them with all that is known of them
                replayer scenarios --json
                """,
        ),
        "check": CommandHelp(
            about="validate a scenario, and show what it would run",
            examples="""
                # show calls, files, bytes and the space needed
                replayer check small-reads
                # show them for other values
                replayer check wordpress-pages -u 50 --set users.think_time=1s
                """,
        ),
        "capture": CommandHelp(
            about="record the file calls of a command or process as a trace",
            examples=r"""
                # record a command
                replayer capture -o untar --root linux -- tar xf linux.tar
                # record a running server and its children until Ctrl-C
                replayer capture -o mysite --root /srv/www -p 4711
                # keep the last 5 minutes in memory; write a trace when a call takes 2 s
                replayer capture --ring 5m --when 'any > 2s' -o freeze \
                    --root /srv/www -p 4711
                """,
            common=("--output", "--root", "--pid", "--rehearse", "--prepare", "--quiet"),
            is_on_mounts=True,
        ),
        "import": CommandHelp(
            about="turn a log (strace, fio iolog, dbench loadfile) into a trace",
            examples=r"""
                # import a log of strace
                replayer import strace.log.xz -o mysite --root /var/www/html
                # import the logs of strace -ff, with the files that were there before
                replayer import strace.log.1 strace.log.2 -o mysite --root /srv/www \
                    --tree files.tsv
                """,
            common=("--output", "--root", "--format", "--tree", "--requests", "--json"),
        ),
        "fit": CommandHelp(
            about="fit the pauses of a trace to the time that its command took",
            examples=r"""
                # record a command, and measure it without the recorder
                replayer capture -o copy --root /srv/site --rehearse 20 \
                    --prepare 'rm -rf /srv/site/new' -- cp -a /srv/site/old /srv/site/new
                # fit the trace where it was recorded
                replayer fit copy --target /srv
                """,
        ),
        "synth": CommandHelp(
            about="make a scenario of the requests in a trace",
            examples=r"""
                # a scenario of recorded page views, for any number of users
                replayer synth mysite -o mine.yaml
                # run it
                replayer run mine.yaml --target /mnt/nfs -u 50
                """,
        ),
        "share": CommandHelp(
            about="make a trace that can be given away, without its names",
            examples=r"""
                # what does a trace give away as it is?
                replayer show wordpress/login --private
                # a trace for others; the names of WordPress's own files stay
                replayer share mysite -o public --keep-known wordpress
                """,
        ),
        "show": CommandHelp(
            about="show what a trace holds: calls, errors, files, requests",
            examples="""
                # show a shipped trace
                replayer show wordpress/front-warm
                # print JSON
                replayer show wordpress/front-warm --json
                """,
        ),
    },
    "mounts": {
        "doctor": CommandHelp(
            about="inspect a mount: its options, advice, a latency probe",
            examples="""
                # inspect and probe a mount
                replayer doctor /mnt/nfs
                # inspect two mounts, write nothing
                replayer doctor --no-probe /mnt/nfs /data
                """,
            is_on_mounts=True,
        ),
        "clean": CommandHelp(
            about="remove folders that killed runs left, and nothing else",
            examples="""
                # show what would be removed
                replayer clean /mnt/nfs --dry-run
                # remove it
                replayer clean /mnt/nfs
                """,
            is_on_mounts=True,
        ),
    },
    "for tools": {
        "locustfile": CommandHelp(
            about="print the path of the packaged locustfile, for locust -f",
            examples=r"""
                # run a scenario under Locust's own command line
                locust -f "$(replayer locustfile)" --headless \
                    --scenario wordpress-pages --target /mnt/nfs -u 16 -t 60s
                # print the path
                replayer locustfile
                """,
        ),
        "schema": CommandHelp(
            about="print the JSON Schema of scenarios, runs or comparisons",
            examples="""
                # let an editor check scenarios
                replayer schema scenario > scenario.schema.json
                # describe what run --json prints
                replayer schema run
                """,
        ),
        "completions": CommandHelp(
            about="print what TAB completes in bash, zsh or fish",
            examples="""
                # complete commands, options, scenarios, traces and runs in this shell
                source <(replayer completions bash)
                # install it for fish
                replayer completions fish > ~/.config/fish/completions/replayer.fish
                """,
        ),
        "man": CommandHelp(
            about="print the manual page, with all commands and options",
            examples="""
                # read it
                replayer man | man -l -
                # install it
                replayer man > ~/.local/share/man/man1/replayer.1
                """,
        ),
        "help": CommandHelp(
            about="print all options of a command",
            examples="""
                # all options of a run
                replayer help run
                # exit codes, and all commands
                replayer help
                """,
        ),
    },
}
"""The help of each command by its name, in sections as they are listed."""
