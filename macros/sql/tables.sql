{#- 1. A next snapshot.

    Args:
      query: of its rows
      properties: of the table
      options: of the table; none if those of dbt-spark are all
      partition_by: columns -#}
{% macro openmirroring__mirror_create_table(table, query, properties, options, partition_by) %}
  create table {{ table }}
  {{ file_format_clause() }}
  {{ mirror_options(options) or options_clause() }}
  {{- mirror_properties(properties) }}
  {{ mirror_partitioned(partition_by) }}
  {{ clustered_cols(label='clustered by') }}
  {{ comment_clause() }}
  as
  {{ query }}
{% endmacro %}


{#- The rows of a documented next snapshot, as a temporary view.

    Args:
      query: of the rows
      comments: on each column, in their order, or an empty text; none before the columns are known -#}
{% macro openmirroring__mirror_documented_rows(view, query, comments) %}
  create or replace temporary view {{ view }}
  {%- if comments %} (
    {%- for name, comment in comments.items() %}
    {{ adapter.quote(name) }} {{- " comment '" ~ mirror_literal(comment) ~ "'" if comment }} {{- ',' if not loop.last }}
    {%- endfor %}
  )
  {%- endif %} as
  {{ query }}
{% endmacro %}


{% macro mirror_options(options) %}
  {%- if options -%}
  options (
    {%- for name, value in options.items() -%}
    '{{ mirror_literal(name) }}' '{{ mirror_literal(value | string) }}' {{- ', ' if not loop.last }}
    {%- endfor -%}
  )
  {%- endif -%}
{% endmacro %}

{% macro mirror_properties(properties) %}
  {%- if properties %}
  tblproperties (
    {%- for name, value in properties.items() %}
    '{{ mirror_literal(name) }}' = '{{ mirror_literal(value | string) }}' {{- ',' if not loop.last }}
    {%- endfor %}
  )
  {%- endif -%}
{% endmacro %}


{#- The rows of a mirrored table, with the types that the model has.

    Args:
      view: of the rows as they landed; none for a table without rows
      columns: of the model -#}
{% macro openmirroring__mirror_restored_rows(view, columns) %}
  select
  {%- for column in columns %}
    {{ column.restored() if view else 'cast(null as ' ~ column.sql_type ~ ')' }} as {{ column.quoted }} {{- ',' if not loop.last }}
  {%- endfor %}
  {{ 'from ' ~ view if view else 'where false' }}
{% endmacro %}


{#- The rows of a mirrored table as they landed. The service may store them in wider types.

    Args:
      view: of the rows -#}
{% macro openmirroring__mirror_landed_rows(view, columns) %}
  select
  {%- for column in columns %}
    {{ column.mirrored() }} as {{ column.quoted }} {{- ',' if not loop.last }}
  {%- endfor %}
  from {{ view }}
{% endmacro %}


{#- Rows that are kept until the node ends. -#}
{% macro openmirroring__mirror_keep(table, query, properties={}) %}
  create table {{ table }} using parquet {{- mirror_properties(properties) }} as
  {{ query }}
{% endmacro %}

{#- The same in the partitions of the snapshot. -#}
{% macro openmirroring__mirror_keep_partitioned(table, query, partition_by, options={}) %}
  create table {{ table }} {{ file_format_clause() }} {{ mirror_options(options) }} {{ mirror_partitioned(partition_by) }} as
  {{ query }}
{% endmacro %}

{% macro mirror_partitioned(columns) %}
  {{- return('partitioned by (' ~ mirror_quoted(columns) ~ ')' if columns else '') -}}
{% endmacro %}


{#- The rows of a seed.

    Args:
      view: of the rows as strings
      columns: the quoted name and the Cast of each
      remedy: what a user can do about a value that cannot be cast -#}
{% macro openmirroring__mirror_seed(view, columns, remedy) %}
  select
    {%- for name, cast in columns %}
    {{ mirror_cast(name, cast, name, remedy) }} as {{ name }} {{- ',' if not loop.last }}
    {%- endfor %}
  from {{ view }}
{% endmacro %}


{#- The rows of a model that are no deletes. -#}
{% macro openmirroring__mirror_live_rows(query, delete_when) %}
  {%- if delete_when -%}
    select * from (
      {{ query }}
    ) {{ mirror_kept_rows(delete_when) }}
  {%- else -%}
    {{ query }}
  {%- endif -%}
{% endmacro %}

{% macro mirror_kept_rows(delete_when) %}
  {{- return('where not coalesce(' ~ delete_when ~ ', false)' if delete_when else '') -}}
{% endmacro %}


{% macro openmirroring__mirror_count_rows(table) %}
  select count(*) from {{ table }}
{% endmacro %}

{#- The rows that have no key. -#}
{% macro openmirroring__mirror_count_without_key(table, keys) %}
  select count(*) from {{ table }} where {{ mirror_any_null(keys) }}
{% endmacro %}

{#- When the rows of a table were last written, in microseconds since 1970: the time of its newest file. -#}
{% macro openmirroring__mirror_last_file(table) %}
  select unix_micros(max(_metadata.file_modification_time)) from {{ table }}
{% endmacro %}

{#- The same of a table of Iceberg. -#}
{% macro openmirroring__mirror_last_commit(table) %}
  select unix_micros(max(committed_at)) from {{ table }}.snapshots
{% endmacro %}


{#- The size of a table in storage: its files say it. -#}
{% macro openmirroring__mirror_table_bytes(table) %}
  select coalesce(sum(size), 0) from (select distinct _metadata.file_path, _metadata.file_size as size from {{ table }})
{% endmacro %}

{% macro openmirroring__mirror_iceberg_bytes(table) %}
  select coalesce(sum(file_size_in_bytes), 0) from {{ table }}.`files`
{% endmacro %}

{#- The versions of a Delta table, the latest first, and what made each.

    Args:
      limit: how many versions; none for all -#}
{% macro openmirroring__mirror_delta_operations(table, limit=none) %}
  describe history {{ table }} {{- ' limit ' ~ limit if limit }}
{% endmacro %}

{#- The snapshots of an Iceberg table as they became its rows, the latest first, and what made each. -#}
{% macro openmirroring__mirror_iceberg_operations(table) %}
  select history.snapshot_id as version, snapshots.operation
  from {{ table }}.`history` as history
  left join {{ table }}.`snapshots` as snapshots on history.snapshot_id = snapshots.snapshot_id
  order by history.made_current_at desc
{% endmacro %}


{#- What Spark does not see by itself: partitions and files that others have put into a table's folder. -#}
{% macro openmirroring__mirror_find_partitions(table) %}
  alter table {{ table }} recover partitions
{% endmacro %}

{% macro openmirroring__mirror_find_files(table) %}
  refresh table {{ table }}
{% endmacro %}


{#- Set properties of a table. -#}
{% macro openmirroring__mirror_mark(table, properties) %}
  alter table {{ table }} set {{ mirror_properties(properties) }}
{% endmacro %}

{#- Remove properties of a table, as far as it has them. -#}
{% macro openmirroring__mirror_unmark(table, names) %}
  alter table {{ table }} unset tblproperties if exists ({{ mirror_literals(names) }})
{% endmacro %}
