"""What all tests need of the process that runs them."""

import signal


def pytest_configure() -> None:
    """Let Ctrl-C reach what the tests start.

    A shell starts background commands with SIGINT ignored, and children inherit that: the
    tests of interrupts would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
