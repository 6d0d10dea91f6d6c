{#- Publish a table as it is in Spark as a rebuild, without computing its rows.

    Args:
      table: `schema.table`, the table alone, or the name or unique id of its node -#}
{% macro mirror_rebuild(table) %}
  {% do adapter.dispatch('mirror_rebuild', 'dbt')(table) %}
{% endmacro %}

{% macro openmirroring__mirror_rebuild(table) %}
  {%- do print(adapter.rebuild(graph.nodes.values(), table)) -%}
{% endmacro %}


{#- In the context of a node. -#}
{% macro mirror_rebuild_table() %}
  {{ return(adapter.dispatch('mirror_rebuild_table', 'dbt')()) }}
{% endmacro %}

{% macro openmirroring__mirror_rebuild_table() %}
  {%- set target = this.incorporate(type='table') -%}
  {%- set options = mirror_options() -%}
  {%- set publication = mirror_begin(target) -%}
  {%- set snapshot = load_cached_relation(target) -%}
  {%- if snapshot is none or not snapshot.is_table -%}
    {%- do exceptions.raise_compiler_error('Spark has no table ' ~ target ~ ', so there is nothing to publish. Run its node.') -%}
  {%- endif -%}
  {%- set rows = adapter.next_rows('select * from ' ~ target) -%}
  {{ return(mirror_publish_rows(publication, target, rows, options, 'mirror_rebuild')) }}
{% endmacro %}
