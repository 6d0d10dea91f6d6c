{#- 3. How many rows or values break each constraint of a contract. -#}
{% macro openmirroring__mirror_count_broken(table, constraints) %}
  select
  {%- for constraint in constraints %}
    {% if constraint.broken -%}
    count_if({{ constraint.broken }})
    {%- else -%}
    max((select count(*) from ({{ mirror_repeated(table, constraint) }})))
    {%- endif %} as c{{ loop.index0 }} {{- ',' if not loop.last }}
  {%- endfor %}
  from {{ table }}
{% endmacro %}

{#- Values that occur more than once. One with a NULL is different from all others, as in the SQL standard. -#}
{% macro mirror_repeated(table, constraint) %}
  {%- set columns = mirror_quoted(constraint.unique) -%}
  select {{ columns }}, count(*) from {{ table }} where not {{ mirror_any_null(constraint.unique) }}
  group by {{ columns }} having count(*) > 1
{%- endmacro %}


{#- A few examples of a broken constraint: the values that occur more than once, or the keys of the rows, and how many rows
    have them. -#}
{% macro openmirroring__mirror_broken_rows(table, constraint, columns) %}
  {%- if constraint.unique -%}
    {{ mirror_repeated(table, constraint) }}
  {%- else -%}
    select {{ mirror_quoted(columns) }}, 1 from {{ table }} where {{ constraint.broken }}
  {%- endif %} order by {{ mirror_quoted(columns) }} limit 5
{% endmacro %}
