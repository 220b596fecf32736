"""Print the page on the command line, from what the commands themselves say."""

from replayer.cli._parsers import KNOWN, ProgramParser


def main() -> None:
    """Print the page."""
    parser = ProgramParser(KNOWN)
    print("# Command line\n")
    print("Every command and option, as `replayer help COMMAND` prints them.\n")
    print(f"```text\n{parser.format_help()}```")
    for name, command in parser.commands.items():
        print(f"\n## replayer {name}\n\n```text\n{command.format_help()}```")


if __name__ == "__main__":
    main()
