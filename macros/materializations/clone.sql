{#- The relation of another target, as a view of it: files of most formats cannot be shared. Views are not mirrored. -#}
{% materialization clone, adapter='openmirroring' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='view') -%}
  {%- if not defer_relation -%}
    {%- do log('No relation found in state manifest for ' ~ model.unique_id, info=True) -%}
    {{ return({'relations': []}) }}
  {%- elif existing and not flags.FULL_REFRESH -%}
    {%- do log('Relation ' ~ existing ~ ' already exists', info=True) -%}
    {{ return({'relations': []}) }}
  {%- elif existing and this.render() == defer_relation.render() -%}
    {%- do log('Target relation and defer relation are the same, skipping clone for relation: ' ~ this) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {%- do adapter.refuse_clone(context) -%}
  {%- if existing and existing.is_table -%}
    {%- do adapter.drop_relation(existing) -%}
  {%- endif -%}

  {%- call statement('main') -%}
    {{ get_create_view_as_sql(target, 'select * from ' ~ defer_relation) }}
  {%- endcall -%}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}
