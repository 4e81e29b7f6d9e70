"""The command line. Each command's module is imported only when that command runs."""
