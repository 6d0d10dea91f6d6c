{#- Create the mirrored database that `landing_zone` names, for open mirroring. It is not started.

    Args:
      default_schema: of tables without a schema
      retention_days: how long Fabric keeps files that the tables do not need any more, 1 to 30; none for its default -#}
{% macro mirror_create_database(default_schema='dbo', retention_days=none) %}
  {% do adapter.dispatch('mirror_create_database', 'dbt')(default_schema, retention_days) %}
{% endmacro %}

{% macro openmirroring__mirror_create_database(default_schema, retention_days) %}
  {%- for line in adapter.mirrored_database().create(default_schema, retention_days) -%}
    {%- do print(line) -%}
  {%- endfor -%}
{% endmacro %}
