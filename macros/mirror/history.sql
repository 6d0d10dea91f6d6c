{#- The rows of a dbt snapshot after this run: those of a first run, or the table with what has changed
    since. What has changed is computed once, as dbt defines it, and kept until the node ends. -#}
{% macro mirror_history(target, sql, options, batch_id=none) %}
  {{ return(adapter.dispatch('mirror_history', 'dbt')(target, sql, options, batch_id)) }}
{% endmacro %}

{% macro openmirroring__mirror_history(target, sql, options, batch_id) %}
  {%- set exists = load_cached_relation(target) is not none -%}
  {%- set strategy_macro = strategy_dispatch(config.get('strategy')) -%}
  {%- set strategy = strategy_macro(model, 'snapshotted_data', 'source_data', model['config'], exists) -%}
  {%- if not exists -%}
    {{ return(adapter.next_rows(build_snapshot_table(strategy, sql))) }}
  {%- endif -%}
  {%- set names = mirror_history_columns() -%}
  {%- do adapter.assert_valid_snapshot_target_given_strategy(target, names, strategy) -%}
  {%- set computed = mirror_keep_new_rows(adapter.rows_beside(target, 'new_rows', batch_id), snapshot_staging_table(strategy, sql, target)) -%}
  {%- set found = adapter.get_columns_in_relation(computed) -%}
  {%- set columns = adapter.history_columns(adapter.get_columns_in_relation(target), found, names.dbt_valid_to) -%}
  {%- set changes = mirror_typed_rows(target, computed, found, columns, batch_id) -%}
  {%- set rewrite = mirror_rewrite(target, changes, columns, options, [[names.dbt_scd_id]]) -%}
  {%- set before = mirror_replaced(target, rewrite) -%}
  {%- set same_version -%}
    DBT_INTERNAL_SOURCE.{{ adapter.quote(names.dbt_scd_id) }} = DBT_INTERNAL_DEST.{{ adapter.quote(names.dbt_scd_id) }}
  {%- endset -%}
  {%- set valid_to = adapter.quote(names.dbt_valid_to) -%}
  {%- set rows -%}
  select {{ mirror_merged(columns, 'dbt_change_type') }}
  from {{ before }} as DBT_INTERNAL_DEST
  left join (select * from {{ changes }} where dbt_change_type in ('update', 'delete')) as DBT_INTERNAL_SOURCE
    on {{ same_version }}
    and (
      DBT_INTERNAL_DEST.{{ valid_to }} is null
      {%- if config.get('dbt_valid_to_current') %}
      or DBT_INTERNAL_DEST.{{ valid_to }} = {{ config.get('dbt_valid_to_current') }}
      {%- endif %}
    )
  union all
  select {{ mirror_from_new_rows(columns) }}
  from (select * from {{ changes }} where dbt_change_type = 'insert') as DBT_INTERNAL_SOURCE
  left anti join {{ before }} as DBT_INTERNAL_DEST on {{ same_version }}
  {%- endset -%}
  {{ return(adapter.next_rows(rows, rewrite)) }}
{% endmacro %}

{% macro mirror_history_columns() %}
  {{ return(config.get('snapshot_table_column_names') or get_snapshot_table_column_names()) }}
{% endmacro %}
