"""The parts of dbt that are no public interface, each used in one place only."""
