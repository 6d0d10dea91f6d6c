{#- 3. What the contract promises, verified on the next snapshot. -#}
{% macro mirror_verify_contract(next, options) %}
  {{ return(adapter.dispatch('mirror_verify_contract', 'dbt')(next, options)) }}
{% endmacro %}

{% macro openmirroring__mirror_verify_contract(next, options) %}
  {%- set constraints = adapter.constraints(model) if config.get('contract').enforced else [] -%}
  {%- if constraints -%}
    {%- set query -%}
      select
      {%- for constraint in constraints %}
        {{ mirror_count_broken(next, constraint) }} as c{{ loop.index0 }} {{- ',' if not loop.last }}
      {%- endfor %}
      from {{ next }}
    {%- endset -%}
    {%- set broken = [] -%}
    {%- for count in run_query(query).rows[0] -%}
      {%- if count -%}
        {%- do broken.append(mirror_broken(next, constraints[loop.index0], count, options)) -%}
      {%- endif -%}
    {%- endfor -%}
    {%- if broken -%}
      {%- do adapter.refuse_broken(broken) -%}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}


{% macro mirror_count_broken(next, constraint) %}
  {%- if constraint.broken -%}
    count_if({{ constraint.broken }})
  {%- else -%}
    (select count(*) from ({{ mirror_repeated(next, constraint) }}))
  {%- endif -%}
{% endmacro %}

{#- Values that occur more than once. One with a NULL is different from all others, as in the SQL standard. -#}
{% macro mirror_repeated(next, constraint) %}
  {%- set columns = mirror_key_list(constraint.unique) -%}
  select {{ columns }}, count(*) from {{ next }} where not {{ mirror_any_null(constraint.unique) }}
  group by {{ columns }} having count(*) > 1
{%- endmacro %}


{#- A broken constraint with a few examples: the values that occur more than once, or the keys of the rows. -#}
{% macro mirror_broken(next, constraint, count, options) %}
  {%- set columns = constraint.unique or options.unique_key -%}
  {%- if constraint.unique -%}
    {%- set examples = mirror_repeated(next, constraint) -%}
  {%- elif columns -%}
    {%- set examples = 'select ' ~ mirror_key_list(columns) ~ ', 1 from ' ~ next ~ ' where ' ~ constraint.broken -%}
  {%- endif -%}
  {%- set found = run_query(examples ~ ' order by all limit 5') if examples else none -%}
  {{ return(adapter.broken_constraint(constraint, count, columns, found)) }}
{% endmacro %}
