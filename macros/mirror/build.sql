{#- 1. Build the next snapshot beside the snapshot, or the part of it that is to be changed there.

    Args:
      rows: as `mirror_rows` returns them
      batch_id: what the snapshot will be recognised by; none for a node that is not mirrored -#}
{% macro mirror_build(target, rows, batch_id=none) %}
  {{ return(adapter.dispatch('mirror_build', 'dbt')(target, rows, batch_id)) }}
{% endmacro %}

{% macro openmirroring__mirror_build(target, rows, batch_id) %}
  {%- if rows.is_part -%}
    {{ return(mirror_keep(adapter.rows_beside(target, 'part', batch_id), rows.query)) }}
  {%- endif -%}
  {%- set query = rows.query -%}
  {%- if rows.rewrite.after -%}
    {%- set after = mirror_keep(rows.rewrite.after, query) -%}
    {%- set query = mirror_with_part(mirror_replaced(target, rows.files), after, rows.rewrite, adapter.get_columns_in_relation(target)) -%}
  {%- endif -%}
  {%- set next = adapter.next_snapshot(target, batch_id) -%}
  {%- call statement('main') -%}
    {{ mirror_create_snapshot(next, query, batch_id) }}
  {%- endcall -%}
  {%- if rows.files -%}
    {%- do adapter.keep_files(rows.files, mirror_description(next)) -%}
    {%- do mirror_find_files(next, config.get('partition_by')) -%}
  {%- endif -%}
  {%- do adapter.cache_added(next) -%}
  {{ return(next) }}
{% endmacro %}


{#- A mirrored table has its files compressed as they land, so that they can be published as they are. -#}
{% macro openmirroring__options_clause() %}
  {%- set options = mirror_options() -%}
  {%- if options.mirror and options.landing_format == 'parquet' and not config.get('options') and config.get('file_format') in (none, 'parquet') -%}
    options (compression '{{ options.compression }}')
  {%- else -%}
    {{ return(spark__options_clause()) }}
  {%- endif -%}
{% endmacro %}


{% macro mirror_create_snapshot(next, sql, batch_id) %}
  {{ return(adapter.dispatch('mirror_create_snapshot', 'dbt')(next, sql, batch_id)) }}
{% endmacro %}

{% macro openmirroring__mirror_create_snapshot(next, sql, batch_id) %}
  {%- set properties = dict(config.get('tblproperties') or {}) -%}
  {%- if batch_id -%}
    {%- do properties.update({adapter.batch_id_property(): batch_id}) -%}
  {%- endif -%}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
    {%- set sql = get_select_subquery(sql) -%}
  {%- endif -%}
  create table {{ next }}
  {{ file_format_clause() }}
  {{ options_clause() }}
  {%- if properties %}
  tblproperties (
    {%- for name, value in properties.items() %}
    '{{ mirror_literal(name) }}' = '{{ mirror_literal(value | string) }}' {{- ',' if not loop.last }}
    {%- endfor %}
  )
  {%- endif %}
  {{ partition_cols(label='partitioned by') }}
  {{ clustered_cols(label='clustered by') }}
  {{ comment_clause() }}
  as
  {{ sql }}
{% endmacro %}
