{#- A digest of a row, in the columns `d0` and `d1`: two rows are the same if these are.

    xxhash64 skips NULLs, so that they could move from one column to another, and takes -0.0 for 0.0: both are
    hashed besides the values. To compare a row with the one of the same key, a hash of 64 bits is enough: one
    changed row in 2^64 is taken for an unchanged one. To find a row among all others it takes two, with
    different seeds.

    Args:
      columns: as they land; none for one that the rows do not have, which is NULL in them
      hashes: 1 or 2 -#}
{% macro mirror_digest(columns, hashes) %}
  {{ return(adapter.dispatch('mirror_digest', 'dbt')(columns, hashes)) }}
{% endmacro %}

{% macro openmirroring__mirror_digest(columns, hashes) %}
  {%- set values = [] -%}
  {%- for some in columns | batch(60) -%}
    {#- which of them are NULL: a bit for each -#}
    {%- set bits = [] -%}
    {%- for column in some -%}
      {%- set bit = 2 ** loop.index0 -%}
      {%- do bits.append('if(' ~ column.quoted ~ ' is null, ' ~ bit ~ ', 0)' if column is not none else bit | string) -%}
    {%- endfor -%}
    {%- do values.append(bits | join(' | ')) -%}
  {%- endfor -%}
  {%- for column in columns if column is not none -%}
    {%- do values.append(column.landed()) -%}
    {%- if column.is_float -%}
      {%- do values.append('(' ~ column.landed() ~ " = 0 and cast(" ~ column.landed() ~ " as string) like '-%')") -%}
    {%- endif -%}
  {%- endfor -%}
  {%- for seed in range(hashes) -%}
    xxhash64({{ ([seed] + values) | join(', ') }}) as d{{ seed }} {{- ', ' if not loop.last }}
  {%- endfor -%}
{% endmacro %}


{#- A value in another type. What cannot be cast is an error, in ANSI mode or not. -#}
{% macro mirror_cast(value, type) -%}
  {%- set cast_value = 'try_cast(' ~ value ~ ' as ' ~ type ~ ')' -%}
  {%- set length = modules.re.fullmatch('char\\((\\d+)\\)', type | lower) -%}
  case
    when {{ value }} is not null and {{ cast_value }} is null
    {%- if (type | lower).startswith(('array<', 'map<', 'struct<')) %}
      {#- what cannot be cast in it becomes NULL in it #}
      or {{ mirror_count_nulls(cast_value) }} > {{ mirror_count_nulls(value) }}
    {%- endif %}
    then cast(raise_error(concat('{{ mirror_literal(value) }} has the value ''', cast({{ value }} as string), ''', which is no {{ mirror_literal(type) }}')) as {{ type }})
    {%- if length %}
    {#- a cast takes it for a string, but a table pads it #}
    else rpad({{ cast_value }}, greatest(length({{ cast_value }}), {{ length[1] }}))
    {%- else %}
    else {{ cast_value }}
    {%- endif %}
  end
{%- endmacro %}


{#- How many NULLs are in a complex value: those of its JSON without its strings, and these without what is escaped in them. -#}
{% macro mirror_count_nulls(value) -%}
  regexp_count(regexp_replace(replace(replace(to_json({{ value }}, map('ignoreNullFields', 'false')), '\\\\', ''), '\\"', ''), '"[^"]*"', ''), 'null')
{%- endmacro %}


{#- Text in a literal. -#}
{% macro mirror_literal(text) %}
  {{- return(text | replace('\\', '\\\\') | replace("'", "\\'") | replace('\r', '\\r') | replace('\n', '\\n') | replace('\0', '\\u0000')) -}}
{% endmacro %}

{% macro mirror_literals(texts) %}
  {%- for text in texts -%}'{{ mirror_literal(text) }}'{{ ', ' if not loop.last }}{%- endfor -%}
{% endmacro %}


{% macro mirror_quoted(names) %}
  {%- set quoted = [] -%}
  {%- for name in names -%}{%- do quoted.append(adapter.quote(name)) -%}{%- endfor -%}
  {{ return(quoted | join(', ')) }}
{% endmacro %}

{% macro mirror_any_null(names) %}
  {%- set tests = [] -%}
  {%- for name in names -%}{%- do tests.append(adapter.quote(name) ~ ' is null') -%}{%- endfor -%}
  {{ return('(' ~ tests | join(' or ') ~ ')') }}
{% endmacro %}
