{#- The files of a snapshot that have rows which new rows may change.

    Args:
      touched_by: lists of columns, each with its ranges: a row may change if it agrees with a new row in all columns of one -#}
{% macro openmirroring__mirror_touched_files(snapshot, new_rows, touched_by) %}
  {%- for names, ranges in touched_by %}
  {#- not of an alias, which may also be the name of a column #}
  select distinct _metadata.file_path from {{ snapshot }} as DBT_INTERNAL_DEST
  left semi join {{ new_rows }} as DBT_INTERNAL_SOURCE on {{ mirror_same(names) }} {{- mirror_in_ranges(ranges) }}
  {{ 'union' if not loop.last }}
  {%- endfor %}
{% endmacro %}

{#- When two rows agree in some columns; NULL agrees with NULL. -#}
{% macro mirror_same(names) %}
  {%- for name in names -%}
    DBT_INTERNAL_SOURCE.{{ adapter.quote(name) }} <=> DBT_INTERNAL_DEST.{{ adapter.quote(name) }} {{- ' and ' if not loop.last }}
  {%- endfor -%}
{% endmacro %}


{#- The least and the greatest value of new rows in some columns, in the types of these columns; of dates the days since 1970. -#}
{% macro openmirroring__mirror_key_bounds(new_rows, columns) %}
  select
  {%- for column in columns %}
    {%- set value = 'cast(' ~ column.quoted ~ ' as ' ~ column.dtype ~ ')' %}
    {%- set value = 'unix_date(' ~ value ~ ')' if column.dtype == 'date' else value %}
    min({{ value }}) as first{{ loop.index0 }}, max({{ value }}) as last{{ loop.index0 }} {{- ',' if not loop.last }}
  {%- endfor %}
  from {{ new_rows }}
{% endmacro %}

{#- The condition that a row of a snapshot may have the key of a new row, by which Spark skips files. NULL always meets it. -#}
{% macro mirror_in_ranges(ranges) %}
  {%- for range in ranges %}
    {%- set column = 'DBT_INTERNAL_DEST.' ~ range.column %} and ({{ column }} between {{ range.first }} and {{ range.last }} or {{ column }} is null)
  {%- endfor -%}
{% endmacro %}


{#- The rows of a snapshot that have the keys of new rows. -#}
{% macro openmirroring__mirror_touched_rows(snapshot, new_rows, keys, ranges) -%}
  select DBT_INTERNAL_DEST.* from {{ snapshot }} as DBT_INTERNAL_DEST
  left semi join {{ new_rows }} as DBT_INTERNAL_SOURCE on {{ mirror_same(keys) }} {{- mirror_in_ranges(ranges) }}
{%- endmacro %}


{#- All rows that a snapshot will have when it has taken others.

    Args:
      replacement: a table of the rows in the place of others
      touched: what these are
      names: of the columns, quoted -#}
{% macro openmirroring__mirror_with_touched_rows(snapshot, replacement, touched, names) %}
  {%- set names = names | join(', ') -%}
  select {{ names }} from {{ snapshot }} as DBT_INTERNAL_DEST
  {%- if touched.keys %}
  left anti join {{ touched.new_rows }} as DBT_INTERNAL_SOURCE on {{ mirror_same(touched.keys) }}
  {%- endif %}
  union all
  select {{ names }} from {{ replacement }}
{%- endmacro %}


{#- 5. A snapshot takes rows in the place of others. A key of new rows that is not in `part` is one of a row that is to be deleted.

    The rows of `part` are structs here, because their columns may have any names.

    Args:
      part: a table of the rows
      names: of the columns, quoted
      ranges: of the keys -#}
{% macro openmirroring__mirror_merge_part(snapshot, part, new_rows, keys, names, ranges) %}
  {%- set found = 'DBT_INTERNAL_SOURCE.part.' ~ adapter.quote(keys[0]) -%}
  merge into {{ snapshot }} as DBT_INTERNAL_DEST
  using (
    select {% for key in keys %}touched.{{ adapter.quote(key) }} as k{{ loop.index0 }}, {% endfor %}struct(part.*) as part
    from (select distinct {{ mirror_quoted(keys) }} from {{ new_rows }}) as touched
    left join {{ part }} as part on
      {%- for key in keys %} touched.{{ adapter.quote(key) }} = part.{{ adapter.quote(key) }} {{- ' and' if not loop.last }}{% endfor %}
  ) as DBT_INTERNAL_SOURCE
  on {% for key in keys %}DBT_INTERNAL_DEST.{{ adapter.quote(key) }} = DBT_INTERNAL_SOURCE.k{{ loop.index0 }} {{- ' and ' if not loop.last }}{% endfor %} {{- mirror_in_ranges(ranges) }}
  when matched and {{ found }} is null then delete
  when matched then update set {% for name in names %}DBT_INTERNAL_DEST.{{ name }} = DBT_INTERNAL_SOURCE.part.{{ name }} {{- ', ' if not loop.last }}{% endfor %}
  when not matched and {{ found }} is not null then insert ({{ names | join(', ') }})
    values ({% for name in names %}DBT_INTERNAL_SOURCE.part.{{ name }} {{- ', ' if not loop.last }}{% endfor %})
{%- endmacro %}

{#- The same without keys: rows are only added. -#}
{% macro openmirroring__mirror_insert_part(snapshot, part, names) %}
  insert into {{ snapshot }} ({{ names | join(', ') }}) select {{ names | join(', ') }} from {{ part }}
{%- endmacro %}
