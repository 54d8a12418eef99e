"""What is read beside the sessions: the machine that the tester runs on, once and each second."""
