{#- A mirrored seed. -#}
{% materialization seed, adapter='openmirroring' %}
  {%- set target = this.incorporate(type='table') -%}
  {%- set agate_table = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}

  {{ run_hooks(pre_hooks) }}

  {%- do mirror_table(target, load_csv_rows(model, agate_table)) -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}


{#- A query of the seed's rows. They are handed over as strings, and cast by Spark: dbt-spark's literals
    lose NULLs and digits. -#}
{% macro openmirroring__load_csv_rows(model, agate_table) %}
  {#- Spark's Thrift server, when it closes a session, takes only names that need no quotes -#}
  {%- set rows = 'openmirroring_seed' -%}
  {%- do adapter.create_seed_view(rows, agate_table) -%}
  {%- set types = model['config'].get('column_types', {}) -%}
  {%- set quote_columns = model['config'].get('quote_columns') -%}
  {%- set sql -%}
    select
      {%- for name in agate_table.column_names %}
      {%- set column = adapter.quote_seed_column(name, quote_columns) %}
      {{ mirror_cast(column, types.get(name, adapter.convert_type(agate_table, loop.index0))) }} as {{ column }}
      {{- ',' if not loop.last }}
      {%- endfor %}
    from {{ adapter.quote(rows) }}
  {%- endset -%}
  {{ return(sql) }}
{% endmacro %}
