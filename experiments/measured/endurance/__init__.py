"""What runs go through and come out of the same: kills, faults, a full disk, a clock that jumps."""
