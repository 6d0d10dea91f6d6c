{#- 4. Write the rows of a query as files.

    Args:
      text: how delimited text is written; none for Parquet
      rows_per_file: where Spark begins another file; 0 for no limit -#}
{% macro openmirroring__mirror_write_files(url, rows, text, compression, rows_per_file) %}
  insert overwrite directory '{{ mirror_literal(url) }}' using {{ 'text' if text else 'parquet' }}
  options (compression '{{ compression }}', maxRecordsPerFile {{ rows_per_file }} {{- mirror_text_options(text) }})
  {{ rows }}
{% endmacro %}


{#- A full load, without row markers: the service's fast path (specification, "Initial load"). -#}
{% macro openmirroring__mirror_load(table, columns, files) %}
  select /*+ COALESCE({{ files }}) */
  {%- for column in columns %}
    {{ column.landed() }} as {{ column.quoted }} {{- ',' if not loop.last }}
  {%- endfor %}
  from {{ table }}
{% endmacro %}


{#- A change set: deletes first, then the other rows with all their columns; the row marker last.

    Args:
      rows: with the new and changed rows: a FileRange -#}
{% macro openmirroring__mirror_changes_keyed(rows, columns, plan, files) %}
  {%- set keys = plan.definition.key_columns | list -%}
  {%- set ranges = 'REPARTITION_BY_RANGE(' ~ files ~ ', position, ' ~ mirror_ordinals(keys, columns) ~ ')' -%}
  select
    {%- for column in columns %}
      c{{ loop.index0 }} as {{ column.quoted }} {{- ',' if plan.is_marked or not loop.last }}
    {%- endfor %}
    {%- if plan.is_marked %}
      marker as `__rowMarker__`
    {%- endif %}
  from (
    select /*+ {{ 'COALESCE(1)' if plan.in_full and files == 1 else ranges }} */ *
    from (
      {{ mirror_changed_in_full(columns, plan) if plan.in_full else mirror_changed_by_key(rows, columns, plan) }}
    )
    {#- not below, where a column of the table may be called `position` #}
    sort by position
  )
{% endmacro %}

{#- The rows that land as c0, c1, ..., their marker, and their position: deletes first. -#}
{% macro mirror_changed_in_full(columns, plan) %}
  {%- set keys = plan.definition.key_columns | list -%}
      select
      {%- for column in columns %}
        {%- set value = column.landed('latest') -%}
        {%- if column.name in keys -%}
          {%- set value = 'if(marker = 2, k' ~ keys.index(column.name) ~ ', ' ~ value ~ ')' -%}
        {%- endif %}
        {{ value }} as c{{ loop.index0 }},
      {%- endfor %}
        marker, if(marker = 2, 0, 1) as position
      from {{ plan.changed }}
      where marker >= 0
{% endmacro %}

{% macro mirror_changed_by_key(rows, columns, plan) %}
  {%- set keys = plan.definition.key_columns | list -%}
      {%- if plan.rows.deleted %}
      select
      {%- for column in columns %}
        {{ 'k' ~ keys.index(column.name) if column.name in keys else 'null' }} as c{{ loop.index0 }},
      {%- endfor %}
        marker, 0 as position
      from {{ plan.changed }}
      where marker = 2
      union all
      {%- endif %}
      select {{ '/*+ BROADCAST(changed) */' if plan.is_small }}
      {%- for column in columns %}
        {{ column.landed('latest') }} as c{{ loop.index0 }},
      {%- endfor %}
        changed.marker, 1 as position
      from {{ mirror_rows(rows) }} as latest
      join {{ plan.changed }} as changed
        on changed.marker <> 2
        {%- for column in columns if column.name in keys %}
        and {{ column.landed('latest') }} = changed.k{{ keys.index(column.name) }}
        {%- endfor %}
{% endmacro %}

{#- The key columns as c0, c1, ... of the statement above. -#}
{% macro mirror_ordinals(keys, columns) %}
  {%- set ordinals = [] -%}
  {%- for column in columns -%}
    {%- if column.name in keys -%}{%- do ordinals.append('c' ~ loop.index0) -%}{%- endif -%}
  {%- endfor -%}
  {{- return(ordinals | join(', ')) -}}
{% endmacro %}


{#- New rows only, so no row marker. Of equal rows only as many land as are new. -#}
{% macro openmirroring__mirror_changes_keyless(rows, columns, plan, files) %}
  select /*+ COALESCE({{ files }}) */
    {%- for column in columns %}
      c{{ loop.index0 }} as {{ column.quoted }} {{- ',' if not loop.last }}
    {%- endfor %}
  from (
    select {{ '/*+ BROADCAST(changed) */' if plan.is_small }}
      latest.*, changed.n, row_number() over (partition by d0, d1 order by d0) as copy
    from (
      select
      {%- for column in columns %}
        {{ column.landed() }} as c{{ loop.index0 }},
      {%- endfor %}
        {{ mirror_digest(columns, 2) }}
      from {{ mirror_rows(rows) }}
    ) as latest
    join {{ plan.changed }} as changed on latest.d0 = changed.k0 and latest.d1 = changed.k1
  )
  where copy <= n
{% endmacro %}


{#- The rows of staged files by file and row marker. -#}
{% macro openmirroring__mirror_count_files(url, plan) %}
  select file, marker, count(*) as found
  from (
    select _metadata.file_name as file, {{ '`__rowMarker__`' if plan.is_marked else 'cast(null as int)' }} as marker
    from {{ mirror_files(url) }}
  )
  group by file, marker
{% endmacro %}
