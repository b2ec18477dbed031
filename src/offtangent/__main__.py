"""Where the program starts. What takes long to load comes after Ctrl-C is seen to."""

from offtangent._interrupts import honour_interrupts


def main() -> None:
    honour_interrupts()
    from offtangent.cli import main as program

    program()


if __name__ == "__main__":
    main()
