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


{#- A value in another type. What cannot be cast, or would lose something, is an error, in ANSI mode or not.

    Args:
      value: its SQL
      cast: a Cast
      name: of the value in messages
      remedy: a sentence that says what a user can do
      depth: of lambdas, which makes the names of their variables unique -#}
{% macro mirror_cast(value, cast, name, remedy, depth=1) -%}
  {%- if cast.is_void -%}
    {{ value }}
  {%- elif cast.fields is not none -%}
    case when {{ value }} is not null then struct(
    {%- for field in cast.fields %}
      {% if field.source -%}
      {{ mirror_cast(value ~ '.' ~ field.source, field.cast, name ~ '.' ~ field.source, remedy, depth) }}
      {%- else -%}
      cast(null as {{ field.cast.type }})
      {%- endif %} as {{ field.name }} {{- ',' if not loop.last }}
    {%- endfor %}
    ) end
  {%- elif cast.element -%}
    {%- set element = 'element_' ~ depth -%}
    transform({{ value }}, {{ element }} -> {{ mirror_cast(element, cast.element, name ~ '.element', remedy, depth + 1) }})
  {%- elif cast.entry -%}
    {%- set entry = 'entry_' ~ depth -%}
    map_from_entries(transform(map_entries({{ value }}), {{ entry }} -> struct(
      {{ mirror_cast(entry ~ '.key', cast.entry[0], name ~ '.key', remedy, depth + 1) }} as key,
      {{ mirror_cast(entry ~ '.value', cast.entry[1], name ~ '.value', remedy, depth + 1) }} as value
    )))
  {%- else -%}
    {%- set found = 'try_cast(' ~ value ~ ' as ' ~ cast.type ~ ')' -%}
    case
      when {{ value }} is not null and ({{ found }} is null {{- mirror_loses(value, found, cast) }})
      then cast(raise_error(concat('{{ mirror_literal(name) }} has the value ''', cast({{ value }} as string), ''', which is no {{ mirror_literal(cast.type) }}. {{ mirror_literal(adapter.with_code(remedy, 'OM307')) }}')) as {{ cast.type }})
      {%- if cast.length %}
      {#- a cast takes it for a string, but a table pads it #}
      else rpad({{ found }}, greatest(length({{ found }}), {{ cast.length }}))
      {%- else %}
      else {{ found }}
      {%- endif %}
    end
  {%- endif -%}
{%- endmacro %}


{#- The rest of the condition that a value cannot be cast: that it would lose something, as `Cast.loss` says. -#}
{% macro mirror_loses(value, found, cast) -%}
  {%- set back = 'try_cast(' ~ found ~ ' as ' ~ cast.source_type ~ ')' -%}
  {%- if cast.loss == 'digits' %}
        or not {{ back }} <=> {{ value }}
  {%- elif cast.loss == 'whole' %}
        or not coalesce(abs({{ back }} - {{ value }}) < 1, false)
    {%- if cast.source_type == 'bigint' %}
        {#- 2^63 is cast back to the largest integer #}
        or {{ found }} >= 9223372036854775807D
    {%- endif %}
  {%- elif cast.loss == 'infinite' %}
        or abs({{ found }}) = double('infinity') and abs({{ value }}) <> double('infinity')
  {%- elif cast.loss == 'text_digits' %}
        or case
          when {{ value }} rlike '[eE]' then not try_cast({{ value }} as double) <=> cast({{ found }} as double)
          else length(regexp_extract({{ value }}, '[.]([0-9]*[1-9])', 1)) > {{ cast.scale }}
        end
  {%- elif cast.loss == 'text_time' %}
        or not trim({{ value }}) rlike '^[^ T]*([ T][0:.]*Z?)?$'
  {%- endif -%}
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
