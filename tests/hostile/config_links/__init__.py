"""Files of a repository that are not what they seem: links, pipes, devices, folders, endless and bottomless ones."""
