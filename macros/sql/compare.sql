{#- 2. The keys that two sets of rows do not have with the same values.

    Args:
      after, before: `rows`, `keys`, `values` and `checks` of each, as Side has them
      is_small: all rows are brought to one task, and all keys are returned, with the new row
      insert_marker: of new rows: `upsert` or `insert` -#}
{% macro openmirroring__mirror_compare_keyed(after, before, is_small, insert_marker) %}
  {%- set k = mirror_key_names(after.keys) -%}
  select {{ k | join(', ') }}, {{ 'latest, p, ' if is_small }}case
      when n > 1 or {{ k | join(' is null or ') }} is null then cast(null as int)
      when n = 0 then 2
      when p = 1 and not differs then -1
      when p > 0 then 1
      else {{ 4 if insert_marker == 'upsert' else 0 }}
    end as marker
  from (
    select {{ k | join(', ') }}, sum(n) as n, sum(p) as p, min(d0) <> max(d0) as differs {{- ', any_value(latest) ignore nulls as latest' if is_small }}
    from (
      select {{ mirror_shuffle_hint(k | join(', '), is_small) }} *
      from (
        {%- for side, counts, row in ((after, '1 as n, 0 as p', 'struct(*)'), (before, '0 as n, 1 as p', 'null')) %}
        select {{ mirror_landed_keys(side.keys, side.checks) }}, {{ mirror_digest(side.values, 1) }}, {{ counts }} {{- ', ' ~ row ~ ' as latest' if is_small }}
        from {{ mirror_rows(side.rows) }}
        {{- ' union all' if not loop.last }}
        {%- endfor %}
      )
    )
    group by {{ k | join(', ') }}
  )
  {%- if not is_small %}
  where n <> 1 or p <> 1 or differs or {{ k | join(' is null or ') }} is null
  {%- endif %}
{% endmacro %}


{#- The rows that two sets of rows do not have equally often; without a key, a row is found by its digest.
    A row that cannot be published has none. -#}
{% macro openmirroring__mirror_compare_keyless(after, before, is_small, insert_marker) %}
  select d0 as k0, d1 as k1, sum(n) as n
  from (
    select {{ mirror_shuffle_hint('d0, d1', is_small) }} *
    from (
      {%- if after.checks %}
      select if(is_refused, null, d0) as d0, d1, 1 as n
      from (select {{ mirror_digest(after.values, 2) }}, {{ mirror_is_refused(after.checks) }} as is_refused from {{ mirror_rows(after.rows) }})
      {%- else %}
      select {{ mirror_digest(after.values, 2) }}, 1 as n from {{ mirror_rows(after.rows) }}
      {%- endif %}
      union all
      select {{ mirror_digest(before.values, 2) }}, -1 as n from {{ mirror_rows(before.rows) }}
    )
  )
  group by d0, d1
  having sum(n) <> 0
{% endmacro %}


{#- Names of keys as they land. -#}
{% macro mirror_key_names(keys) %}
  {%- set names = [] -%}
  {%- for _ in keys -%}{%- do names.append('k' ~ loop.index0) -%}{%- endfor -%}
  {{ return(names) }}
{% endmacro %}

{#- Keys as they land, as k0, k1, ...: what is the same key in the mirror is compared, not what Spark takes for equal.
    A row that does not pass the checks gets no key: then it cannot be published, and no column more is shuffled. -#}
{% macro mirror_landed_keys(keys, checks=()) -%}
  {%- for key in keys -%}
    {{ 'if(' ~ mirror_is_refused(checks) ~ ', null, ' ~ key.landed() ~ ')' if checks and loop.first else key.landed() }} as k{{ loop.index0 }} {{- ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}

{#- Whether a row has a value that cannot be published. -#}
{% macro mirror_is_refused(checks) %}
  {{- return(checks | map(attribute='condition') | join(' or ')) -}}
{% endmacro %}

{#- Brings rows that agree in some columns to one task. -#}
{% macro mirror_shuffle_hint(columns, is_small) %}
  {{- return('/*+ COALESCE(1) */' if is_small else '/*+ REPARTITION(' ~ columns ~ ') */') -}}
{% endmacro %}


{#- How many rows have changed, whether there are some that cannot be published, and how many rows the snapshot has.

    Args:
      changed: what a comparison has found
      snapshot: to count; none if `changed` has all its keys -#}
{% macro openmirroring__mirror_count_keyed(changed, snapshot) %}
  select
    count_if(marker in (0, 4)) as inserted, count_if(marker = 1) as updated, count_if(marker = 2) as deleted,
    count_if(marker is null) as refused,
    {{ '(select count(*) from ' ~ snapshot ~ ')' if snapshot else 'sum(p)' }} as rows_before
  from {{ changed }}
{% endmacro %}

{% macro openmirroring__mirror_count_keyless(changed, snapshot) %}
  select
    coalesce(sum(n) filter (where n > 0), 0) as inserted, 0 as updated, coalesce(-sum(n) filter (where n < 0), 0) as deleted,
    count_if(k0 is null) as refused, (select count(*) from {{ snapshot }}) as rows_before
  from {{ changed }}
{% endmacro %}


{#- The rows of a full load, and whether it has some that cannot be published.

    Args:
      checks: of values, as ValueCheck has them -#}
{% macro openmirroring__mirror_count_load(table, keys, is_small, checks=()) %}
  {%- set k = mirror_key_names(keys) -%}
  {%- if not k -%}
    select count(*) as inserted, {{ 'count_if(' ~ mirror_is_refused(checks) ~ ') > 0' if checks else 'false' }} as refused from {{ table }}
  {%- else -%}
    select coalesce(sum(n), 0) as inserted, coalesce(bool_or(bad), false) as refused
    from (
      select count(*) as n, count(*) > 1 or {{ mirror_any_null(k) }} as bad
      from (
        select {{ mirror_shuffle_hint(k | join(', '), is_small) }} {{ k | join(', ') }}
        from (select {{ mirror_landed_keys(keys, checks) }} from {{ table }})
      )
      group by {{ k | join(', ') }}
    )
  {%- endif -%}
{% endmacro %}


{#- Whether a key that is new among the rows compared is in the table more than once. -#}
{% macro openmirroring__mirror_new_keys_elsewhere(table, changed, keys) %}
  select 1 from (select {{ mirror_landed_keys(keys) }} from {{ table }}) as latest
  left semi join {{ changed }} as changed on changed.marker in (0, 4)
  {%- for _ in keys %} and latest.k{{ loop.index0 }} = changed.k{{ loop.index0 }}{% endfor %}
  group by {{ mirror_key_names(keys) | join(', ') }}
  having count(*) > 1
  limit 1
{% endmacro %}


{#- 3. Duplicate and NULL keys: how many, and a few of them. -#}
{% macro openmirroring__mirror_bad_keys(table, keys) %}
  {%- set k = mirror_key_names(keys) -%}
  select count(*) over () as bad, {% for name in k %}cast({{ name }} as string) as {{ name }}, {% endfor %}rows
  from (
    select {{ k | join(', ') }}, count(*) as rows
    from (select {{ mirror_landed_keys(keys) }} from {{ table }})
    group by {{ k | join(', ') }}
    having count(*) > 1 or {{ mirror_any_null(k) }}
  )
  order by {{ k | join(', ') }}
  limit 5
{% endmacro %}


{#- 3. Versions of a dbt snapshot that are NULL or not unique: of how many keys, and a few of them.

    Args:
      version: the column that names a version
      keys: SQL of the key of the dbt snapshot -#}
{% macro openmirroring__mirror_repeated_versions(table, version, keys) %}
  {%- set k = mirror_key_names(keys) -%}
  select count(*) over () as bad, {{ k | join(', ') }}, rows
  from (
    select {{ k | join(', ') }}, max(rows) as rows
    from (
      select {% for key in keys %}any_value(cast({{ key }} as string)) as k{{ loop.index0 }}, {% endfor %}count(*) as rows
      from {{ table }}
      group by {{ version.quoted }}
      having count(*) > 1 or {{ version.quoted }} is null
    )
    group by {{ k | join(', ') }}
  )
  order by {{ k | join(', ') }}
  limit 5
{% endmacro %}


{#- Keys of published rows that are in two rows of the next snapshot: how many, and of a few of them the partitions of the
    published row and of the new one.

    Args:
      table: the next snapshot
      snapshot: the published rows
      keys, published_keys: the keys of each
      partition_by: columns -#}
{% macro openmirroring__mirror_left_rows(table, snapshot, keys, published_keys, partition_by) %}
  {%- set k = mirror_key_names(keys) | join(', ') -%}
  select count(*) over () as bad, {% for name in mirror_key_names(keys) %}cast({{ name }} as string) as {{ name }}, {% endfor %}published, new
  from (
    select {{ k }}, max(published) as published, max(place) filter (where place <> published) as new
    from (select {{ mirror_landed_keys(keys) }}, {{ mirror_place(partition_by) }} as place from {{ table }})
    join (
      select {{ k }}, max(place) as published
      from (select {{ mirror_landed_keys(published_keys) }}, {{ mirror_place(partition_by) }} as place from {{ snapshot }})
      group by {{ k }} having count(*) = 1
    ) using ({{ k }})
    group by {{ k }} having count(*) > 1
  )
  order by {{ k }}
  limit 5
{% endmacro %}

{#- The partition of a row, as text. -#}
{% macro mirror_place(partition_by) -%}
  concat_ws(', '
  {%- for name in partition_by -%}
    , concat('{{ mirror_literal(name) }}=', coalesce(cast({{ adapter.quote(name) }} as string), 'NULL'))
  {%- endfor -%}
  )
{%- endmacro %}


{#- 3. Values that cannot be published: of each check how many, and a few of them with the keys of their rows. -#}
{% macro openmirroring__mirror_bad_values(table, keys, checks) %}
  {%- set k = mirror_key_names(keys) -%}
  select {{ (['`check`', 'bad', 'example'] + k) | join(', ') }}
  from (
    select *, count(*) over (partition by `check`) as bad,
      row_number() over (partition by `check` order by {{ (k + ['example']) | join(', ') }}) as position
    from (
      select {% for key in keys %}{{ mirror_printable(key.landed()) }} as k{{ loop.index0 }}, {% endfor %}
        inline(filter(array(
        {%- for check in checks %}
          if({{ check.condition }}, struct({{ loop.index0 }} as `check`, {{ check.example }} as example), null) {{- ',' if not loop.last }}
        {%- endfor %}
        ), found -> found is not null))
      from {{ table }}
      where {{ mirror_is_refused(checks) }}
    )
  )
  where position <= 3
  order by `check`, position
{% endmacro %}

{#- A key as text, in which whatever is not UTF-8 is replaced. -#}
{% macro mirror_printable(value) %}
  {{- return("decode(encode(cast(" ~ value ~ " as string), 'UTF-16BE'), 'UTF-16BE')") -}}
{% endmacro %}
