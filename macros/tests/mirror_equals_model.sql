{#- The mirrored table holds the model's rows: all of them, as often, and no other.

    Returns the keys (without keys: the rows) that differ, and how.

    Args:
      model: a mirrored table
      timeout: seconds to wait until what was published has been applied -#}
{% test mirror_equals_model(model, timeout=60) %}
  {{ return(adapter.dispatch('mirror_equals_model', 'dbt')(model, timeout)) }}
{% endtest %}

{% macro openmirroring__mirror_equals_model(model, timeout) %}
  {%- if not execute or invocation_args_dict.which not in ('test', 'build') -%}
    {#- dbt compiles tests also where it does not run them -#}
    {{ return('select 1 where false') }}
  {%- elif model is string -%}
    {%- do exceptions.raise_compiler_error('mirror_equals_model compares whole tables: remove `where` from the test.') -%}
  {%- endif -%}
  {{ return(adapter.mirror_difference(context, model, timeout)) }}
{% endmacro %}


{#- The mirrored rows, as a temporary view: a version of the Delta table, or files with its rows, read without Delta.

    Args:
      replica: `folder`, `version`, `files` and `columns` of the mirrored table -#}
{% macro openmirroring__mirror_replica_view(view, replica) %}
  create or replace temporary view {{ view }}
  {%- if replica.version is not none %} as
    select * from delta.{{ adapter.quote(replica.folder) }} version as of {{ replica.version }}
  {%- elif replica.files %} (
    {%- for column in replica.columns %}
      {{ column.quoted }} {{ column.sql_type }} {{- ',' if not loop.last }}
    {%- endfor %}
    ) using parquet options (
      path '{{ mirror_literal(mirror_no_pattern(replica.folder) ~ '/{' ~ replica.files | join(',') ~ '}') }}',
      {#- Spark did not write these files, so its settings would decide about the calendar of their dates #}
      datetimeRebaseMode 'CORRECTED', int96RebaseMode 'CORRECTED'
    )
  {%- else %} as select
    {%- for column in replica.columns %}
      cast(null as {{ column.sql_type }}) as {{ column.quoted }} {{- ',' if not loop.last }}
    {%- endfor %}
    where false
  {%- endif -%}
{% endmacro %}


{#- The rows that two tables do not have equally often, by key.

    Args:
      model: the one table; what lands of its columns is compared
      mirror: the other -#}
{% macro openmirroring__mirror_difference(model, columns, mirror, keys) %}
  {%- set ordinals = [] -%}
  {%- for column in columns -%}
    {%- do ordinals.append('c' ~ loop.index0) -%}
  {%- endfor -%}
  select
  {%- for column in columns if column.name in keys %}
    c{{ columns.index(column) }} as {{ column.quoted }},
  {%- endfor %}
    case
      when min(surplus) > 0 then 'missing in the mirrored table'
      when max(surplus) < 0 then 'only in the mirrored table'
      else 'different'
    end as `difference`
  from (
    select {{ ordinals | join(', ') }}, sum(side) as surplus
    from (
      select
      {%- for column in columns %}
        {{ column.landed() }} as c{{ loop.index0 }},
      {%- endfor %}
        1 as side
      from {{ model }}
      union all
      select
      {%- for column in columns %}
        {{ column.mirrored() }} as c{{ loop.index0 }},
      {%- endfor %}
        -1 as side
      from {{ mirror }}
    )
    group by {{ ordinals | join(', ') }}
    having sum(side) <> 0
  )
  group by
  {%- for column in columns if column.name in keys %}
    c{{ columns.index(column) }} {{- ',' if not loop.last }}
  {%- endfor %}
{% endmacro %}
