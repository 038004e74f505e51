"""Side by side with a peer, on the same work, in one run; ratios and medians only."""
