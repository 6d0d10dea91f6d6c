{#- Drop the table folders of this project that no mirrored node has any more.

    Args:
      dry_run: only list them
      schema: of those to drop; none for all schemas of this target -#}
{% macro mirror_drop_orphans(dry_run=true, schema=none) %}
  {% do adapter.dispatch('mirror_drop_orphans', 'dbt')(dry_run, schema) %}
{% endmacro %}

{% macro openmirroring__mirror_drop_orphans(dry_run, schema) %}
  {%- do mirror_report(adapter.drop_orphans(graph.nodes.values(), dry_run, schema)) -%}
{% endmacro %}


{#- Tell what an operation did, and fail if it failed with a table. -#}
{% macro mirror_report(outcome) %}
  {%- for line in outcome.lines -%}
    {%- do print(line) -%}
  {%- endfor -%}
  {%- if outcome.failed -%}
    {%- do exceptions.raise_compiler_error(outcome.failed | join('\n')) -%}
  {%- endif -%}
{% endmacro %}
