{#- Rows in other types.

    Args:
      rows: SQL of them
      columns: the quoted name of each, its Cast (none if it stays), and its new name
      remedy: what a user can do about a value that cannot be cast -#}
{% macro openmirroring__mirror_typed_rows(rows, columns, remedy) %}
  select
  {%- for name, cast, alias in columns %}
    {{ mirror_cast('DBT_INTERNAL_SOURCE.' ~ name, cast, name, remedy) if cast else name }} as {{ alias }} {{- ',' if not loop.last }}
  {%- endfor %}
  from {{ rows }} as DBT_INTERNAL_SOURCE
{% endmacro %}


{#- Rows of the snapshot in the types of the next one.

    Args:
      rows: a FileRange
      columns: of the next snapshot, as `incremental_columns` returns them
      remedy: what a user can do about a value that cannot be cast -#}
{% macro openmirroring__mirror_typed_snapshot(rows, columns, remedy) %}
  {%- set cast = [] -%}
  {%- for column in columns if column.snapshot_type not in (none, column.dtype) -%}{%- do cast.append(column) -%}{%- endfor -%}
  {%- if not cast -%}
    {{ mirror_rows(rows) }}
  {%- else -%}
    (select
    {%- for column in columns if column.snapshot_type is not none %}
      {{ mirror_cast('DBT_INTERNAL_DEST.' ~ column.quoted, column.snapshot_cast, column.quoted, remedy) if column in cast else column.quoted }} as {{ column.quoted }} {{- ',' if not loop.last }}
    {%- endfor %}
    from {{ mirror_rows(rows) }} as DBT_INTERNAL_DEST)
  {%- endif -%}
{% endmacro %}


{#- New rows with the same key: a row of the snapshot can take the values of one only. -#}
{% macro openmirroring__mirror_ambiguous_rows(new_rows, keys) %}
  select {{ mirror_quoted(keys) }}, count(*) from {{ new_rows }} where not {{ mirror_any_null(keys) }}
  group by {{ mirror_quoted(keys) }} having count(*) > 1 order by {{ mirror_quoted(keys) }} limit 5
{% endmacro %}


{#- The strategies: what a snapshot (DBT_INTERNAL_DEST) becomes with new rows (DBT_INTERNAL_SOURCE).

    Args:
      snapshot: SQL of its rows that may change
      new_rows: a table
      columns: of the result, as `incremental_columns` returns them
      predicates: SQL that a new row and a row of the snapshot must meet to be the same one -#}
{% macro openmirroring__mirror_append(snapshot, new_rows, columns, options, predicates) %}
  select {{ mirror_from_snapshot(columns) }} from {{ snapshot }} as DBT_INTERNAL_DEST
  union all
  select {{ mirror_from_new_rows(columns) }} from {{ new_rows }} as DBT_INTERNAL_SOURCE
{% endmacro %}

{% macro openmirroring__mirror_merge(snapshot, new_rows, columns, options, predicates) %}
  {%- if not options.unique_key -%}
    {{ return(openmirroring__mirror_append(snapshot, new_rows, columns, options, predicates)) }}
  {%- endif -%}
  {%- set condition = mirror_same_row(options.unique_key, predicates) -%}
  {%- set source = '(select * from ' ~ new_rows ~ ' ' ~ mirror_kept_rows(options.delete_when) ~ ') as DBT_INTERNAL_SOURCE' -%}
  select {{ mirror_merged(columns, adapter.quote(options.unique_key[0])) }}
  {%- if options.delete_when %}
  from (
    select * from {{ snapshot }} as DBT_INTERNAL_DEST
    left anti join (select * from {{ new_rows }} where {{ options.delete_when }}) as DBT_INTERNAL_SOURCE
      on {{ condition }}
  ) as DBT_INTERNAL_DEST
  {%- else %}
  from {{ snapshot }} as DBT_INTERNAL_DEST
  {%- endif %}
  left join {{ source }} on {{ condition }}
  union all
  select {{ mirror_from_new_rows(columns) }} from {{ source }}
  left anti join {{ snapshot }} as DBT_INTERNAL_DEST on {{ condition }}
{% endmacro %}

{% macro openmirroring__mirror_delete_insert(snapshot, new_rows, columns, options, predicates) %}
  select {{ mirror_from_snapshot(columns) }} from {{ snapshot }} as DBT_INTERNAL_DEST
  left anti join {{ new_rows }} as DBT_INTERNAL_SOURCE on {{ mirror_same_row(options.unique_key, predicates) }}
  union all
  select {{ mirror_from_new_rows(columns) }} from {{ new_rows }} as DBT_INTERNAL_SOURCE {{ mirror_kept_rows(options.delete_when) }}
{% endmacro %}

{% macro openmirroring__mirror_insert_overwrite(snapshot, new_rows, columns, options, predicates) %}
  {{ return(mirror_overwritten(snapshot, new_rows, columns, options.partition_by)) }}
{% endmacro %}

{#- Rows of other batches stay: their partition may begin or end at another time than a batch. -#}
{% macro openmirroring__mirror_microbatch(snapshot, new_rows, columns, options, predicates) %}
  {{ return(mirror_overwritten(snapshot, new_rows, columns, options.partition_by, predicates)) }}
{% endmacro %}

{% macro mirror_overwritten(snapshot, new_rows, columns, partition_by, predicates=()) %}
  {%- if partition_by %}
  select {{ mirror_from_snapshot(columns) }} from {{ snapshot }} as DBT_INTERNAL_DEST
  left anti join {{ new_rows }} as DBT_INTERNAL_SOURCE on {{ mirror_same(partition_by) }}
  {%- for predicate in predicates %} and ({{ predicate }}){% endfor %}
  union all
  {%- endif %}
  select {{ mirror_from_new_rows(columns) }} from {{ new_rows }} as DBT_INTERNAL_SOURCE
{% endmacro %}

{#- When a batch replaces a row of the partition of a new row: the row is one of this batch, or has the key of the new row; or the
    new row is not of this batch, because the model does not select by time.

    Args:
      event_time: a column, quoted
      start, end: of the batch, as dbt writes them to the filters of a ref -#}
{% macro openmirroring__mirror_in_batch(event_time, start, end, keys) %}
  {%- for alias in ('DBT_INTERNAL_DEST', 'DBT_INTERNAL_SOURCE') -%}
    {%- set time = alias ~ '.' ~ event_time -%}
    {{ 'not ' if not loop.first }}coalesce({{ time }} >= '{{ start }}' and {{ time }} < '{{ end }}', false) {{- ' or ' if not loop.last }}
  {%- endfor -%}
  {{ ' or ' ~ mirror_same(keys) if keys }}
{% endmacro %}


{#- When a new row and a row of the snapshot are the same one. -#}
{% macro mirror_same_row(keys, predicates) %}
  {%- set conditions = [] -%}
  {%- for predicate in predicates -%}
    {#- one may have an `or` -#}
    {%- do conditions.append('(' ~ predicate ~ ')') -%}
  {%- endfor -%}
  {%- for key in keys -%}
    {%- do conditions.append('DBT_INTERNAL_SOURCE.' ~ adapter.quote(key) ~ ' = DBT_INTERNAL_DEST.' ~ adapter.quote(key)) -%}
  {%- endfor -%}
  {{ return(conditions | join(' and ')) }}
{% endmacro %}


{#- The snapshot's values, or those of the new row that a join has found: there `found`, a column of it, is not NULL. -#}
{% macro mirror_merged(columns, found) %}
  {%- for column in columns %}
    {% if column.is_updated -%}
    case when DBT_INTERNAL_SOURCE.{{ found }} is not null
      then {{ mirror_new_value(column) }} else {{ mirror_snapshot_value(column) }} end
    {%- else -%}
    {{ mirror_snapshot_value(column) }}
    {%- endif %} as {{ column.quoted }} {{- ',' if not loop.last }}
  {%- endfor -%}
{% endmacro %}

{% macro mirror_from_snapshot(columns) %}
  {%- for column in columns %}
    {{ mirror_snapshot_value(column) }} as {{ column.quoted }} {{- ',' if not loop.last }}
  {%- endfor -%}
{% endmacro %}

{% macro mirror_from_new_rows(columns) %}
  {%- for column in columns %}
    {{ mirror_new_value(column) }} as {{ column.quoted }} {{- ',' if not loop.last }}
  {%- endfor -%}
{% endmacro %}

{% macro mirror_snapshot_value(column) %}
  {{- return(mirror_null_of(column) if column.snapshot_type is none else 'DBT_INTERNAL_DEST.' ~ column.quoted) -}}
{% endmacro %}

{% macro mirror_new_value(column) %}
  {{- return(mirror_null_of(column) if column.new_type is none else 'DBT_INTERNAL_SOURCE.' ~ column.quoted) -}}
{% endmacro %}

{% macro mirror_null_of(column) %}
  {{- return('cast(null as ' ~ column.sql_type ~ ')') -}}
{% endmacro %}
