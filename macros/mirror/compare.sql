{#- 2. Which rows differ between the snapshot and the next one: their keys are found, and counted.

    Narrow on purpose: of every row only key and digest are shuffled, once, before they are grouped: to group
    them where they are read first would be in vain, since most are there only once.

    Returns:
      rows: how many have changed
      changed: a relation with the columns k0, k1, ... (the key as it lands) and `marker`: the row marker, or NULL for a
        key that is NULL or not unique. Without a key, k0 and k1 are the digest, and n how many rows of it are new
        (more than 0) or gone (less than 0). It is a table, or a query: to find the changed keys of a small table again
        takes less than to write and to read files.
      in_full: `changed` has the column `latest` too, with the new row, so that it need not be found by its key; it
        has all keys, with a marker of -1 where nothing changed, and how often each is in the snapshot, in `p` -#}
{% macro mirror_compare(publication, snapshot, next, columns, definition, journal, options, rewrite) %}
  {{ return(adapter.dispatch('mirror_compare', 'dbt')(publication, snapshot, next, columns, definition, journal, options, rewrite)) }}
{% endmacro %}

{% macro openmirroring__mirror_compare(publication, snapshot, next, columns, definition, journal, options, rewrite) %}
  {%- if rewrite and rewrite.are_all -%}
    {{ return({'rows': adapter.row_counts()}) }}
  {%- endif -%}
  {%- set published = adapter.columns_by_name(adapter.published_columns(journal)) -%}
  {%- set before = mirror_replaced(snapshot, rewrite) -%}
  {%- set after = mirror_written(next, rewrite) -%}
  {%- set keyed = definition.key_columns | length > 0 -%}
  {%- set small = mirror_is_small(columns, journal.batch.table_rows) -%}
  {%- set changed -%}
    {%- if keyed -%}
      {{ mirror_compare_keyed(before, after, columns, definition, published, options, small) }}
    {%- else -%}
      {{ mirror_compare_keyless(before, after, columns, published, small) }}
    {%- endif -%}
  {%- endset -%}
  {%- if small -%}
    {%- set changed = '(' ~ changed ~ ')' -%}
  {%- else -%}
    {%- set changed = mirror_keep(adapter.rows_beside(snapshot, 'changed', publication.batch_id), changed) -%}
  {%- endif -%}
  {%- set query -%}
    {{ mirror_count_keyed() if keyed else mirror_count_keyless() }},
    {{ 'sum(p)' if small and keyed and not rewrite else '(select count(*) from ' ~ snapshot ~ ')' }}
    from {{ changed }}
  {%- endset -%}
  {%- set counts = run_query(query).rows[0] -%}
  {%- do publication.verify_rows(journal, counts[4] | int) -%}
  {%- if counts[3] or (counts[0] and keyed and rewrite and rewrite.names_before and mirror_new_keys_elsewhere(changed, next, columns, definition)) -%}
    {%- do mirror_refuse_keys(next, columns, definition) -%}
  {%- endif -%}
  {{ return({'rows': adapter.row_counts(inserted=counts[0], updated=counts[1], deleted=counts[2]), 'changed': changed, 'in_full': small and keyed}) }}
{% endmacro %}


{% macro mirror_compare_keyed(before, after, columns, definition, published, options, small) %}
  {%- set keys = definition.key_columns -%}
  {#- a key that is 0.0 equals one that is -0.0, and lands differently -#}
  {%- set others = (columns | rejectattr('name', 'in', keys) | list) + (columns | selectattr('name', 'in', keys) | selectattr('dtype', 'in', ('float', 'double')) | list) -%}
  {%- set k = mirror_landed_names(keys) -%}
  select {{ k | join(', ') }}, {{ 'latest, p, ' if small }}case
      when n > 1 or {{ k | join(' is null or ') }} is null then cast(null as int)
      when n = 0 then 2
      when p = 1 and not differs then -1
      when p > 0 then 1
      else {{ 4 if options.insert_marker == 'upsert' else 0 }}
    end as marker
  from (
    select {{ k | join(', ') }}, sum(n) as n, sum(p) as p, min(d0) <> max(d0) as differs {{- ', any_value(latest) ignore nulls as latest' if small }}
    from (
      select {{ mirror_together(k | join(', '), small) }} *
      from (
        {%- for relation, present, side, row in (
          (after, adapter.columns_by_name(columns), '1 as n, 0 as p', 'struct(*)'), (before, published, '0 as n, 1 as p', 'null')
        ) %}
        select {{ mirror_landed_keys(keys, present) }}, {{ mirror_digest(others, present, 1) }}, {{ side }} {{- ', ' ~ row ~ ' as latest' if small }}
        from {{ relation }}
        {{- ' union all' if not loop.last }}
        {%- endfor %}
      )
    )
    group by {{ k | join(', ') }}
  )
  {%- if not small %}
  where n <> 1 or p <> 1 or differs or {{ k | join(' is null or ') }} is null
  {%- endif %}
{% endmacro %}

{#- The names of keys as they land. -#}
{% macro mirror_landed_names(keys) %}
  {%- set names = [] -%}
  {%- for key in keys -%}{%- do names.append('k' ~ loop.index0) -%}{%- endfor -%}
  {{ return(names) }}
{% endmacro %}

{#- Keys as they land, as k0, k1, ...: what is the same key in the mirror is compared, not what Spark takes for equal.

    Args:
      present: the columns by name -#}
{% macro mirror_landed_keys(keys, present) -%}
  {%- for key in keys -%}
    {{ mirror_landing(present[key]).value }} as k{{ loop.index0 }} {{- ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}

{% macro mirror_count_keyed() %}
  select count_if(marker in (0, 4)), count_if(marker = 1), count_if(marker = 2), count_if(marker is null)
{% endmacro %}


{#- Brings rows that agree in some columns to one task. -#}
{% macro mirror_together(columns, small) %}
  {{- return('/*+ COALESCE(1) */' if small else '/*+ REPARTITION(' ~ columns ~ ') */') -}}
{% endmacro %}


{#- Whether a key that is new among the rows compared is in a file that was not. -#}
{% macro mirror_new_keys_elsewhere(changed, next, columns, definition) %}
  {%- set keys = definition.key_columns -%}
  {%- set query -%}
    select 1 from (select {{ mirror_landed_keys(keys, adapter.columns_by_name(columns)) }} from {{ next }}) as latest
    left semi join {{ changed }} as changed on changed.marker in (0, 4)
    {%- for key in keys %} and latest.k{{ loop.index0 }} = changed.k{{ loop.index0 }}{% endfor %}
    group by {{ mirror_landed_names(keys) | join(', ') }}
    having count(*) > 1
    limit 1
  {%- endset -%}
  {{ return(run_query(query).rows | length > 0) }}
{% endmacro %}


{% macro mirror_compare_keyless(before, after, columns, published, small) %}
  select d0 as k0, d1 as k1, sum(n) as n
  from (
    select {{ mirror_together('d0, d1', small) }} *
    from (
      select {{ mirror_digest(columns, adapter.columns_by_name(columns), 2) }}, 1 as n from {{ after }}
      union all
      select {{ mirror_digest(columns, published, 2) }}, -1 as n from {{ before }}
    )
  )
  group by d0, d1
  having sum(n) <> 0
{% endmacro %}

{% macro mirror_count_keyless() %}
  select coalesce(sum(n) filter (where n > 0), 0), 0, coalesce(-sum(n) filter (where n < 0), 0), 0
{% endmacro %}


{#- Parquet files in a folder, as a table. Its path is read as a pattern: what has a meaning in one is escaped. -#}
{% macro mirror_files(url) %}
  {{- return('parquet.' ~ adapter.quote(mirror_no_pattern(url))) -}}
{% endmacro %}

{#- Spark takes paths for patterns. -#}
{% macro mirror_no_pattern(path) %}
  {{- return(modules.re.sub('([][{}*?])', '\\\\\\1', path)) -}}
{% endmacro %}

{% macro mirror_literal(text) %}
  {{- return(text | replace('\\', '\\\\') | replace("'", "\\'") | replace('\r', '\\r') | replace('\n', '\\n') | replace('\0', '\\u0000')) -}}
{% endmacro %}
