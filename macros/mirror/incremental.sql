{#- The rows of the next snapshot: the model's own, or in an incremental run the snapshot with what the model's new
    rows do to it.

    Args:
      incremental: what is_incremental() was when the model was compiled
      batch_id: of the publication; none for a node that is not mirrored -#}
{% macro mirror_rows(target, sql, options, incremental, batch_id=none) %}
  {{ return(adapter.dispatch('mirror_rows', 'dbt')(target, sql, options, incremental, batch_id)) }}
{% endmacro %}

{% macro openmirroring__mirror_rows(target, sql, options, incremental, batch_id) %}
  {%- if model.config.materialized == 'snapshot' -%}
    {{ return(mirror_history(target, sql, options, batch_id)) }}
  {%- elif is_incremental() != incremental -%}
    {%- do exceptions.raise_compiler_error(
      'An earlier run was interrupted and has just been brought to its end, but this run was compiled without its result. '
      ~ 'Nothing was lost; run it again.'
    ) -%}
  {%- endif -%}
  {%- if not incremental -%}
    {{ return(adapter.next_rows(mirror_live_rows(sql, options))) }}
  {%- endif -%}
  {%- set computed = mirror_keep_new_rows(adapter.rows_beside(target, 'new_rows', batch_id), mirror_query(sql)) -%}
  {%- set found = adapter.get_columns_in_relation(computed) -%}
  {%- set columns = adapter.incremental_columns(
    adapter.get_columns_in_relation(target),
    found,
    incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore'),
    model.config
  ) -%}
  {%- set new_rows = mirror_typed_rows(target, computed, found, columns, batch_id) -%}
  {%- set strategy = context['openmirroring__mirror_' ~ options.strategy_name] -%}
  {%- set rewrite = mirror_rewrite(target, new_rows, columns, options, options.touched_by) -%}
  {%- set before = mirror_typed_snapshot(mirror_replaced(target, rewrite), columns) -%}
  {{ return(adapter.next_rows(strategy(before, new_rows, columns, options), rewrite)) }}
{% endmacro %}


{#- New rows in the types of the next snapshot, so that rows are matched as they will be stored. What the next snapshot
    does not have stays as it is: `delete_when` may ask for it.

    Returns: the table itself if it has these types

    Args:
      computed: a table of the new rows
      found: its columns
      columns: of the next snapshot, as `incremental_columns` returns them -#}
{% macro mirror_typed_rows(target, computed, found, columns, batch_id) %}
  {%- set types = {} -%}
  {%- for column in columns if column.new_type not in (none, column.dtype) -%}
    {%- do types.update({column.name | lower: column.dtype}) -%}
  {%- endfor -%}
  {%- if not types -%}
    {{ return(computed) }}
  {%- endif -%}
  {%- set typed -%}
    select
    {%- for column in found %}
      {{ mirror_cast(column.quoted, types[column.name | lower]) if column.name | lower in types else column.quoted }} as {{ column.quoted }} {{- ',' if not loop.last }}
    {%- endfor %}
    from {{ computed }}
  {%- endset -%}
  {{ return(mirror_keep_new_rows(adapter.rows_beside(target, 'typed_rows', batch_id), typed)) }}
{% endmacro %}


{#- Rows of the snapshot in the types of the next one. -#}
{% macro mirror_typed_snapshot(rows, columns) %}
  {%- for column in columns if column.snapshot_type not in (none, column.dtype) -%}
    {%- if loop.first -%}
      {%- set typed -%}
(select
        {%- for column in columns if column.snapshot_type is not none %}
          {{ column.quoted if column.snapshot_type == column.dtype else mirror_cast(column.quoted, column.dtype) }} as {{ column.quoted }} {{- ',' if not loop.last }}
        {%- endfor %}
        from {{ rows }})
      {%- endset -%}
      {{ return(typed) }}
    {%- endif -%}
  {%- endfor -%}
  {{ return(rows) }}
{% endmacro %}


{#- The rows of a model that are no deletes. -#}
{% macro mirror_live_rows(sql, options) %}
  {%- set query = mirror_query(sql) -%}
  {%- if not options.delete_when -%}
    {{ return(query) }}
  {%- endif -%}
  {%- set live -%}
select * from (
  {{ query }}
) {{ mirror_kept_rows(options) }}
  {%- endset -%}
  {{ return(live) }}
{% endmacro %}


{#- The rows of a model, as a query: its SQL, or the view that its Python has made. -#}
{% macro mirror_query(code) %}
  {%- if model.language != 'python' -%}
    {{ return(code) }}
  {%- endif -%}
  {%- set view = 'rows of ' ~ model.alias -%}
  {%- do adapter.create_python_view(view, code, model) -%}
  {{ return('select * from ' ~ adapter.quote(view)) }}
{% endmacro %}


{#- Compute rows once, and keep them until the node ends. -#}
{% macro mirror_keep(relation, sql) %}
  {{ return(adapter.dispatch('mirror_keep', 'dbt')(relation, sql)) }}
{% endmacro %}

{% macro openmirroring__mirror_keep(relation, sql) %}
  {{ return(mirror_keep_as(relation, sql, 'using parquet')) }}
{% endmacro %}

{% macro mirror_keep_as(relation, sql, layout) %}
  {%- call statement('main') -%}
    create table {{ relation }} {{ layout }} as
    {{ sql }}
  {%- endcall -%}
  {%- do adapter.cache_added(relation) -%}
  {{ return(relation) }}
{% endmacro %}

{#- New rows in the partitions that the snapshot has, if it has any: values of partitions are not stored as they are (an empty
    string is NULL), and what is published is what the snapshot stores. -#}
{% macro mirror_keep_new_rows(relation, sql) %}
  {%- if not config.get('partition_by') -%}
    {{ return(mirror_keep(relation, sql)) }}
  {%- endif -%}
  {{ return(mirror_keep_as(relation, sql, file_format_clause() ~ ' ' ~ partition_cols(label='partitioned by'))) }}
{% endmacro %}


{#- The strategies: what a snapshot (DBT_INTERNAL_DEST) becomes with new rows (DBT_INTERNAL_SOURCE).

    Args:
      target: the rows of the snapshot that may change
      new_rows: a table
      columns: of the result, as `incremental_columns` returns them -#}
{% macro openmirroring__mirror_append(target, new_rows, columns, options) %}
  select {{ mirror_from_snapshot(columns) }} from {{ target }} as DBT_INTERNAL_DEST
  union all
  select {{ mirror_from_new_rows(columns) }} from {{ new_rows }} as DBT_INTERNAL_SOURCE
{% endmacro %}

{% macro openmirroring__mirror_merge(target, new_rows, columns, options) %}
  {%- if not options.unique_key -%}
    {{ return(openmirroring__mirror_append(target, new_rows, columns, options)) }}
  {%- endif -%}
  {%- do mirror_refuse_ambiguous(new_rows, options) -%}
  {%- set condition = mirror_incremental_condition(options.unique_key) -%}
  {%- set source -%}
(select * from {{ new_rows }} {{ mirror_kept_rows(options) }}) as DBT_INTERNAL_SOURCE
  {%- endset -%}
  select {{ mirror_merged(columns, adapter.quote(options.unique_key[0])) }}
  from {{ target }} as DBT_INTERNAL_DEST
  left join {{ source }} on {{ condition }}
  {%- if options.delete_when %}
  left anti join (select * from {{ new_rows }} where {{ options.delete_when }}) as deleted
    on {{ condition | replace('DBT_INTERNAL_SOURCE', 'deleted') }}
  {%- endif %}
  union all
  select {{ mirror_from_new_rows(columns) }} from {{ source }}
  left anti join {{ target }} as DBT_INTERNAL_DEST on {{ condition }}
{% endmacro %}

{% macro openmirroring__mirror_delete_insert(target, new_rows, columns, options) %}
  select {{ mirror_from_snapshot(columns) }} from {{ target }} as DBT_INTERNAL_DEST
  left anti join {{ new_rows }} as DBT_INTERNAL_SOURCE on {{ mirror_incremental_condition(options.unique_key) }}
  union all
  select {{ mirror_from_new_rows(columns) }} from {{ new_rows }} as DBT_INTERNAL_SOURCE {{ mirror_kept_rows(options) }}
{% endmacro %}

{% macro openmirroring__mirror_insert_overwrite(target, new_rows, columns, options) %}
  {%- if options.partition_by %}
  select {{ mirror_from_snapshot(columns) }} from {{ target }} as DBT_INTERNAL_DEST
  left anti join {{ new_rows }} as DBT_INTERNAL_SOURCE on
    {%- for name in options.partition_by %}
    DBT_INTERNAL_SOURCE.{{ adapter.quote(name) }} <=> DBT_INTERNAL_DEST.{{ adapter.quote(name) }} {{- ' and' if not loop.last }}
    {%- endfor %}
  union all
  {%- endif %}
  select {{ mirror_from_new_rows(columns) }} from {{ new_rows }} as DBT_INTERNAL_SOURCE
{% endmacro %}

{% macro openmirroring__mirror_microbatch(target, new_rows, columns, options) %}
  {{ return(openmirroring__mirror_insert_overwrite(target, new_rows, columns, options)) }}
{% endmacro %}


{#- When a new row and a row of the snapshot are the same one. -#}
{% macro mirror_incremental_condition(keys) %}
  {%- set conditions = (config.get('predicates') or config.get('incremental_predicates') or []) | list -%}
  {%- for key in keys -%}
    {%- do conditions.append('DBT_INTERNAL_SOURCE.' ~ adapter.quote(key) ~ ' = DBT_INTERNAL_DEST.' ~ adapter.quote(key)) -%}
  {%- endfor -%}
  {{ return(conditions | join(' and ')) }}
{% endmacro %}

{% macro mirror_kept_rows(options) %}
  {{- return('where not coalesce(' ~ options.delete_when ~ ', false)' if options.delete_when else '') -}}
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
  {{- return('cast(null as ' ~ column.dtype ~ ')') -}}
{% endmacro %}


{#- A row of the snapshot can take the values of one new row only. -#}
{% macro mirror_refuse_ambiguous(new_rows, options) %}
  {%- set keys = mirror_key_list(options.unique_key) -%}
  {%- set query -%}
    select {{ keys }}, count(*) from {{ new_rows }} where not {{ mirror_any_null(options.unique_key) }}
    group by {{ keys }} having count(*) > 1 order by all limit 5
  {%- endset -%}
  {%- set ambiguous = run_query(query) -%}
  {%- if ambiguous.rows -%}
    {%- do adapter.refuse_new_rows(options, ambiguous) -%}
  {%- endif -%}
{% endmacro %}
