{#- 4. Write the files to publish to the scratch pad: a full load, or the change set.

    Returns: these files -#}
{% macro mirror_stage(publication, next, columns, plan, options, rewrite) %}
  {{ return(adapter.dispatch('mirror_stage', 'dbt')(publication, next, columns, plan, options, rewrite)) }}
{% endmacro %}

{% macro openmirroring__mirror_stage(publication, next, columns, plan, options, rewrite) %}
  {%- if plan.publication == 'unchanged' -%}
    {{ return([]) }}
  {%- endif -%}
  {%- set bytes = mirror_size_in_bytes(next, columns) -%}
  {%- if plan.starts_folder or bytes <= options.target_file_size -%}
    {%- set rows = plan.row_count -%}
  {%- else -%}
    {%- set rows = run_query('select count(*) from ' ~ next).rows[0][0] -%}
  {%- endif -%}
  {%- set files = plan.files(bytes, rows, options.target_file_size) -%}
  {%- call statement('mirror_stage') -%}
  insert overwrite directory '{{ mirror_literal(publication.staging_url('rows')) }}' using {{ 'text' if options.delimited else 'parquet' }}
  options (compression '{{ options.compression }}', maxRecordsPerFile {{ files.rows_per_file }} {{- mirror_text_options(options.delimited) }})
  {%- set rows -%}
  {%- if plan.starts_folder %}
  {{ mirror_load(next, columns, files.count) }}
  {%- elif plan.definition.key_columns %}
  {{ mirror_changes_keyed(mirror_written(next, rewrite), columns, plan, files.count) }}
  {%- else %}
  {{ mirror_changes_keyless(mirror_written(next, rewrite), columns, plan, files.count) }}
  {%- endif -%}
  {%- endset -%}
  {{ mirror_lines(rows, plan, files.rows_per_file) if options.delimited else rows }}
  {%- endcall -%}
  {{ return(mirror_staged_files(publication, plan)) }}
{% endmacro %}


{#- How large a table is in storage: what its description says, or else what its files say. -#}
{% macro mirror_size_in_bytes(relation, columns) %}
  {{ return(adapter.dispatch('mirror_size_in_bytes', 'dbt')(relation, columns)) }}
{% endmacro %}

{% macro openmirroring__mirror_size_in_bytes(relation, columns) %}
  {%- set bytes = mirror_known_size(columns) -%}
  {%- if bytes is none -%}
    {%- set query -%}
      select coalesce(sum(size), 0) from (select distinct _metadata.file_path, _metadata.file_size as size from {{ relation }})
    {%- endset -%}
    {%- set bytes = run_query(query).rows[0][0] | int -%}
  {%- endif -%}
  {{ return(bytes) }}
{% endmacro %}


{#- Without row markers: the service's fast path (specification, "Initial load"). -#}
{% macro mirror_load(next, columns, files) %}
  {{ return(adapter.dispatch('mirror_load', 'dbt')(next, columns, files)) }}
{% endmacro %}

{% macro openmirroring__mirror_load(next, columns, files) %}
  select /*+ COALESCE({{ files }}) */
      {{- mirror_landing_columns(columns) }}
  from {{ next }}
{% endmacro %}


{#- Known to be small enough for one task: faster than to bring rows to several.

    Args:
      rows_before: of the snapshot, if it takes part -#}
{% macro mirror_is_small(columns, rows_before=0) %}
  {%- set bytes = mirror_known_size(columns) -%}
  {{ return(bytes is not none and bytes <= 4 * 1024 * 1024 and rows_before <= 1000000) }}
{% endmacro %}

{% macro mirror_known_size(columns) %}
  {{ return((columns[0].table_stats or {}).get('stats:bytes:value')) }}
{% endmacro %}


{#- Deletes first, then the other rows with all their columns; the row marker last. -#}
{% macro mirror_changes_keyed(rows, columns, plan, files) %}
  {{ return(adapter.dispatch('mirror_changes_keyed', 'dbt')(rows, columns, plan, files)) }}
{% endmacro %}

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
  )
  sort by position
{% endmacro %}


{#- The rows that land as c0, c1, ..., their marker, and their position: deletes first. -#}
{% macro mirror_changed_in_full(columns, plan) %}
  {%- set keys = plan.definition.key_columns | list -%}
      select
      {%- for column in columns %}
        {%- set value = mirror_landing(column, 'latest.' ~ column.quoted).value -%}
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
        {%- if column.name in keys %}
        k{{ keys.index(column.name) }} as c{{ loop.index0 }},
        {%- else %}
        null as c{{ loop.index0 }},
        {%- endif %}
      {%- endfor %}
        marker, 0 as position
      from {{ plan.changed }}
      where marker = 2
      union all
      {%- endif %}
      select {{ '/*+ BROADCAST(changed) */' if plan.is_small }}
      {%- for column in columns %}
        {{ mirror_landing(column, 'latest.' ~ column.quoted).value }} as c{{ loop.index0 }},
      {%- endfor %}
        changed.marker, 1 as position
      from {{ rows }} as latest
      join {{ plan.changed }} as changed
        on changed.marker <> 2
        {%- for column in columns if column.name in keys %}
        and {{ mirror_landing(column, 'latest.' ~ column.quoted).value }} = changed.k{{ keys.index(column.name) }}
        {%- endfor %}
{% endmacro %}

{#- The key columns as c0, c1, ... of the statement above. -#}
{% macro mirror_ordinals(keys, columns) %}
  {%- set ordinals = [] -%}
  {%- for column in columns if column.name in keys -%}
    {%- do ordinals.append('c' ~ (columns | map(attribute='name') | list).index(column.name)) -%}
  {%- endfor -%}
  {{- return(ordinals | join(', ')) -}}
{% endmacro %}


{#- New rows only, so no row marker. Of equal rows only as many land as are new. -#}
{% macro mirror_changes_keyless(rows, columns, plan, files) %}
  {{ return(adapter.dispatch('mirror_changes_keyless', 'dbt')(rows, columns, plan, files)) }}
{% endmacro %}

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
        {{ mirror_landing(column).value }} as c{{ loop.index0 }},
      {%- endfor %}
        {{ mirror_digest(columns, adapter.columns_by_name(columns), 2) }}
      from {{ rows }}
    ) as latest
    join {{ plan.changed }} as changed on latest.d0 = changed.k0 and latest.d1 = changed.k1
  )
  where copy <= n
{% endmacro %}


{#- The staged files in publication order, counted, without those that have no row. A load of an empty model, or a new
    column without a value, is one file without rows: it tells the service the columns. -#}
{% macro mirror_staged_files(publication, plan) %}
  {{ return(adapter.dispatch('mirror_staged_files', 'dbt')(publication, plan)) }}
{% endmacro %}

{% macro openmirroring__mirror_staged_files(publication, plan) %}
  {%- set staged = publication.staged(plan) -%}
  {%- set found = none if plan.definition.delimited else adapter.staged_rows(publication, staged) -%}
  {%- if found is none -%}
    {%- set url = publication.staging_url('rows') -%}
    {%- set query = mirror_count_lines(url, plan) if plan.definition.delimited else mirror_count_staged(url, plan) -%}
    {%- set found = adapter.counted_rows(run_query(query)) -%}
  {%- endif -%}
  {{ return(publication.verify_staged(plan, staged, found)) }}
{% endmacro %}

{#- The rows of staged files by file and row marker. -#}
{% macro mirror_count_staged(url, plan) %}
  {%- set marker = '`__rowMarker__`' if plan.is_marked else 'cast(null as int)' -%}
  select file, marker, count(*)
  from (select _metadata.file_name as file, {{ marker }} as marker from {{ mirror_files(url) }})
  group by file, marker
{% endmacro %}
