"""Whether this machine is fit to test so many users with a plan: looked at beforehand, and tried out on itself."""
