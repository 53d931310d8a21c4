"""Trains, with a checkpoint after every chunk, until it is killed; `victim.py FOLDER replace|fsync N` kills itself."""

import os
import signal
import sys
import time

from sines import Sines, train

folder, *manner = sys.argv[1:]
if manner:
    name, fatal = manner[0], int(manner[1])
    original, calls = getattr(os, name), iter(range(1, 10**6))

    def deadly(*args):
        if next(calls) == fatal:
            if name == "fsync":  # half of the content has reached the disk
                os.ftruncate(args[0], os.fstat(args[0]).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args)

    setattr(os, name, deadly)

train(tasks=Sines(), checkpoint=folder, save_every=0.0, evaluate=lambda model: time.sleep(0.05), evaluate_every=2)
