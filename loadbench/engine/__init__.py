"""When sessions start, when chunks leave, how one is driven, and how fit the tester is; in a process of its own."""
