"""Folders and files of a local disk, where others can write too."""
