"""An area whose second trial fails and whose third crashes, to test the runner with."""

import os
import signal

from campaign import Violation


def trial(seed, folder):
    if seed == 1:
        raise Violation("this must not happen")
    if seed == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    return "nothing happened"
