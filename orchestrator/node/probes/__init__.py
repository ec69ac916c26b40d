"""What the node says about itself: one pure parser a probe, one set of numbered rules over all of them.

    smi.py      nvidia-smi -q -x           system.py   /proc, sysfs, disk, python          rules.py   the comparison

Nothing here opens a connection or believes anything; tests feed golden outputs, honest and hostile ones.
"""
