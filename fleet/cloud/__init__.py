"""The rules of the cloud under the fleet: what a cloud accepts, what bites later, and what nobody should do.

Plain values in, findings out. The program that builds a cluster asks them before it registers anything, and the policy
pack asks the same ones about what any program registers.
"""
