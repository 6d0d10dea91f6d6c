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
  {%- set columns = adapter.get_columns_in_relation(model) -%}
  {%- set replica = adapter.replicated(model, timeout) -%}
  {%- set names = columns | map(attribute='name') | list -%}
  {%- set mirrored = replica.columns | map(attribute='name') | list -%}
  {%- if names | sort != mirrored | sort -%}
    {%- do exceptions.raise_compiler_error(
      'The mirrored table of ' ~ model ~ ' has the columns ' ~ mirrored | join(', ') ~ ', the model has ' ~ names | join(', ') ~ '.'
    ) -%}
  {%- endif -%}
  {{ return(mirror_difference(model, columns, mirror_view(replica), replica.key_columns or names)) }}
{% endmacro %}


{#- The mirrored rows, as a temporary view: what the Delta log lists as current files, read without Delta. -#}
{% macro mirror_view(replica) %}
  {{ return(adapter.dispatch('mirror_view', 'dbt')(replica)) }}
{% endmacro %}

{% macro openmirroring__mirror_view(replica) %}
  {#- Spark's Thrift server, when it closes a session, takes only names that need no quotes -#}
  {%- set view = adapter.quote('openmirroring_replica') -%}
  {%- call statement('mirror_view') -%}
  create or replace temporary view {{ view }}
  {%- if replica.files %} (
    {%- for column in replica.columns %}
      {{ adapter.quote(column.name) }} {{ column.type }} {{- ',' if not loop.last }}
    {%- endfor %}
    ) using parquet options (
      path '{{ mirror_literal(mirror_no_pattern(replica.folder) ~ '/{' ~ replica.files | join(',') ~ '}') }}'
    )
  {%- else %} as select
    {%- for column in replica.columns %}
      cast(null as {{ column.type }}) as {{ adapter.quote(column.name) }} {{- ',' if not loop.last }}
    {%- endfor %}
    where false
  {%- endif -%}
  {%- endcall -%}
  {{ return(view) }}
{% endmacro %}


{#- The rows that two tables do not have equally often, by key.

    Args:
      model: the one table; what lands of its columns is compared
      mirror: the other -#}
{% macro mirror_difference(model, columns, mirror, keys) %}
  {{ return(adapter.dispatch('mirror_difference', 'dbt')(model, columns, mirror, keys)) }}
{% endmacro %}

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
        {{ mirror_landing(column).value }} as c{{ loop.index0 }},
      {%- endfor %}
        1 as side
      from {{ model }}
      union all
      select
      {%- for column in columns %}
        cast({{ column.quoted }} as {{ mirror_landing(column).type }}) as c{{ loop.index0 }},
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
