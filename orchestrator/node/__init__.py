"""The SSH connection to a node, and everything that is said over it: probes, challenge, cargo, jobs, wipe.

The node is hostile. What comes from it is bounded in bytes, frames and time, made harmless before anybody sees it, and
never names a path. The room must not decide what a lost or lying node means for the run, keep a cursor beside what lies
in the lease's folder, or send a byte before the pinned host key was seen. paramiko and fabric stay inside.
"""
