"""The Spark that starts in the dbt project, on this machine, if the profile names no other one."""
