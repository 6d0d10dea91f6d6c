{#- Values of the source of a dbt snapshot, as dbt's macros write them.

    Args:
      query: of the source
      values: SourceValue -#}
{% macro openmirroring__mirror_source_values(query, values) %}
  select
  {%- for value in values %}
    {{ 'source_data.' if value.is_column }}{{ value.sql }} {{- ',' if not loop.last }}
  {%- endfor %}
  from (
    {{ query }}
  ) as source_data
{% endmacro %}


{#- The rows of the source of a dbt snapshot. A NULL as a key equals none of those that are stored.

    Args:
      query: of the source
      keys: SQL of each -#}
{% macro openmirroring__mirror_source_rows(query, keys) %}
  {%- set told -%}
    The `unique_key` of the dbt snapshot ({{ keys | join(', ') }}) is NULL in a row of its source, and each run would add a version of it. Nothing was changed. Leave such rows out in the source, or give them a key.
  {%- endset -%}
  select * from (
    {{ query }}
  ) as source_data
  where case
    when ({{ keys | join(') is null or (') }}) is null then cast(raise_error('{{ mirror_literal(told) }}') as boolean)
    else true
  end
{% endmacro %}


{#- The rows of a dbt snapshot after this run: those of its table, with what has changed since.

    Args:
      snapshot: SQL of its rows that may change
      changes: a table, as dbt computes it
      columns: of the result, as `history_columns` returns them
      names: of the columns that dbt adds
      valid_to_current: SQL of `dbt_valid_to` in current versions, besides NULL -#}
{% macro openmirroring__mirror_history(snapshot, changes, columns, names, valid_to_current) %}
  {%- set version = adapter.quote(names.dbt_scd_id) -%}
  {%- set valid_to = 'DBT_INTERNAL_DEST.' ~ adapter.quote(names.dbt_valid_to) -%}
  {%- set same_version = 'DBT_INTERNAL_SOURCE.' ~ version ~ ' = DBT_INTERNAL_DEST.' ~ version -%}
  select {{ mirror_merged(columns, 'dbt_change_type') }}
  from {{ snapshot }} as DBT_INTERNAL_DEST
  left join (select * from {{ changes }} where dbt_change_type in ('update', 'delete')) as DBT_INTERNAL_SOURCE
    on {{ same_version }}
    and ({{ valid_to }} is null {{- ' or ' ~ valid_to ~ ' = ' ~ valid_to_current if valid_to_current }})
  union all
  select {{ mirror_from_new_rows(columns) }}
  from (select * from {{ changes }} where dbt_change_type = 'insert') as DBT_INTERNAL_SOURCE
  left anti join {{ snapshot }} as DBT_INTERNAL_DEST on {{ same_version }}
{% endmacro %}
