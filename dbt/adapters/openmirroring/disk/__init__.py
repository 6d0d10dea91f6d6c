"""Files and folders of this machine."""
