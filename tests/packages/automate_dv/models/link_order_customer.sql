{{ automate_dv.link(
    src_pk='order_customer_hk', src_fk=['order_hk', 'customer_hk'], src_ldts='loaded',
    src_source='source', source_model='stage_orders'
) }}
